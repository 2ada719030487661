"""Nodes: what is refused, dropped and warned about."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.defaults.node import drop_disabled_node_fields
from nodeward.rules.names import qualified_name
from nodeward.rules.readiness import LABEL_PREFIX
from nodeward.validation.core.node_readiness import CONDITION_TYPE_LIMIT
from nodeward.validation.registry import VALIDATORS
from tests.validation.pods import NODE, a_node, pod_context
from tests.validation.tables import Case, case, check, check_create, check_status, check_update, context

_G = "spec.readinessGates"
_GATE = {
    "conditionType": "example.com/StorageReady",
    "timeoutSeconds": 60,
    "readinessTaint": {"key": "example.com/storage", "effect": "NoSchedule"},
}
_TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
_TAINTED = "metadata.taints"


@pytest.mark.parametrize(
    "one",
    [
        case("a name is enough"),
        case(
            "nodes have no namespace",
            {"metadata.namespace": "x"},
            "metadata.namespace: Forbidden: not allowed on this type",
        ),
        case(
            "taints are unique by key and effect",
            {"spec.taints": [_TAINT, {**_TAINT, "value": "w"}, {**_TAINT, "effect": "NoExecute"}]},
            f'{_TAINTED}[1]: Duplicate value: {{"key":"k","value":"w","effect":"NoSchedule"}}: '
            "taints must be unique by key and effect pair",
        ),
        case(
            "taints have keys, values and effects",
            {"spec.taints": [{"key": "a b", "value": "-"}]},
            f'{_TAINTED}[0].key: Invalid value: "a b": name part must consist...',
            f'{_TAINTED}[0].value: Invalid value: "-": a valid label must be...',
            f"{_TAINTED}[0].effect: Required value",
        ),
        case(
            "amounts are not negative, and whole where they are counted",
            {"status.capacity": {"cpu": "-1", "pods": "1500m", "example.com/gpu": "500m"}},
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.capacity.pods: Invalid value: "1500m": must be an integer',
            'status.capacity.example.com/gpu: Invalid value: "500m": must be an integer',
            'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.pods: Invalid value: "1500m": must be an integer',
            'status.allocatable.example.com/gpu: Invalid value: "500m": must be an integer',
        ),
        case("one network of each family", {"spec.podCIDRs": ["10.0.0.0/24", "fd00::/64"]}),
        case(
            "not two of one",
            {"spec.podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]},
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for '
            "each IP family",
        ),
        case(
            "networks are networks",
            {"spec.podCIDRs": ["10.0.0.1/24"]},
            'spec.podCIDRs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length',
        ),
        case(
            "swap is more than nothing",
            {"status.nodeInfo.swap": {"capacity": 0}},
            "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero",
        ),
        case(
            "preemption for resizes is behind a gate",
            {"spec.podPreemptionPolicy": {}},
            "spec.podPreemptionPolicy: Forbidden",
        ),
        case(
            "and names resources once",
            {"spec.podPreemptionPolicy": {"disableResizePreemption": ["cpu", "cpu", "a b"]}},
            'spec.podPreemptionPolicy.disableResizePreemption[2]: Invalid value: "a b": name part must consist...',
            'spec.podPreemptionPolicy.disableResizePreemption[1]: Duplicate value: "cpu"',
            gates=("InPlacePodVerticalScalingSchedulerPreemption",),
        ),
    ],
    ids=str,
)
def test_new_nodes(one: Case) -> None:
    check_create(Node, NODE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("features are sorted names", {"status.declaredFeatures": ["A", "A/b", "B1"]}),
        case(
            "a feature's name has 253 characters at most",
            {"status.declaredFeatures": ["A" * 254]},
            f'status.declaredFeatures[0]: Invalid value: "{"A" * 254}": invalid feature name "{"A" * 254}": '
            "must be no more than 253 characters",
        ),
        case(
            "addresses are listed once", {"status.addresses": [{"type": "InternalIP", "address": "1.1.1.1"}]}
        ),
        case(
            "and not twice",
            {"status.addresses": [{"type": "InternalIP", "address": "1.1.1.1"}] * 2},
            'status.addresses[1]: Duplicate value: {"type":"InternalIP","address":"1.1.1.1"}',
        ),
    ],
    ids=str,
)
def test_status(one: Case) -> None:
    check_status(Node, NODE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("taints may change", {"spec.taints": [_TAINT]}),
        case("a network may be assigned", {"spec.podCIDRs": ["10.0.0.0/24"]}),
        case(
            "but not changed",
            {"spec.podCIDRs": ["10.0.1.0/24"]},
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
            before={"spec.podCIDRs": ["10.0.0.0/24"]},
        ),
        case(
            "who provided the node stays",
            {"spec.providerID": "b"},
            "spec.providerID: Invalid value: null: field cannot be modified once set",
            before={"spec.providerID": "a"},
        ),
        case(
            "and is not forgotten",
            {"spec.providerID": ""},
            "spec.providerID: Invalid value: null: field cannot be cleared once set",
            before={"spec.providerID": "a"},
        ),
        case(
            "the old name outside stays",
            {"spec.externalID": "x"},
            "spec.externalID: Forbidden: may not be updated",
        ),
        case(
            "a configuration source is complete",
            {"spec.configSource": {"configMap": {"uid": "u", "name": "A"}}},
            "spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
            "spec.configSource.configMap.namespace: Required value",
            'spec.configSource.configMap.name: Invalid value: "A": a lowercase RFC 1123 subdomain...',
            "spec.configSource.configMap.kubeletConfigKey: Required value",
        ),
    ],
    ids=str,
)
def test_changed_nodes(one: Case) -> None:
    check_update(Node, NODE, one)


def _gates(promise: str, *parts: object) -> Case:
    gates = [part for part in parts if isinstance(part, dict)]
    errors = [part for part in parts if isinstance(part, str)]
    return case(promise, {_G: gates}, *errors)


_LONGEST = f"{'a' * 59}.{'b' * 59}.{'c' * 54}/{'n' * 63}"
_BAD = f'{_G}[0].conditionType: Invalid value: "{{}}": {{}}...'


@pytest.mark.parametrize(
    "one",
    [
        _gates("a gate has a type, a time and a taint (KEP-5233)", _GATE),
        _gates(
            "who is only warned needs no taint",
            {"conditionType": "a.b/C", "timeoutSeconds": 0, "failureAction": "BypassWithWarning"},
        ),
        _gates("a taint that is not used is no harm", {**_GATE, "failureAction": "BypassWithWarning"}),
        _gates(
            "a type is listed once",
            _GATE,
            _GATE,
            f'{_G}[1].conditionType: Duplicate value: "example.com/StorageReady"',
        ),
        _gates("a type is needed", {**_GATE, "conditionType": ""}, f"{_G}[0].conditionType: Required value"),
        _gates(
            "a type has a domain",
            {**_GATE, "conditionType": "Ready"},
            f'{_G}[0].conditionType: Invalid value: "Ready": must be a domain-prefixed key (such as "acme.io/foo")',
        ),
        *(
            _gates(f"{bad!r} is not a type", {**_GATE, "conditionType": bad}, _BAD.format(bad, part))
            for bad, part in (("a b", "name part"), ("/x", "prefix part"), ("A_.com/x", "prefix part"))
        ),
        _gates("238 characters are fine", {**_GATE, "conditionType": _LONGEST}),
        _gates(
            "239 characters are too many",
            {**_GATE, "conditionType": f"d{_LONGEST}"},
            f"{_G}[0].conditionType: Too long: may not be more than 238 bytes",
        ),
        _gates(
            "a time is needed", {**_GATE, "timeoutSeconds": None}, f"{_G}[0].timeoutSeconds: Required value"
        ),
        _gates(
            "a time is not negative",
            {**_GATE, "timeoutSeconds": -1},
            f"{_G}[0].timeoutSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        _gates(
            "actions are known",
            {**_GATE, "failureAction": "Reboot"},
            f'{_G}[0].failureAction: Unsupported value: "Reboot": supported values: "Taint", "BypassWithWarning"',
        ),
        _gates(
            "who taints says with what",
            {"conditionType": "a.b/C", "timeoutSeconds": 1},
            f"{_G}[0].readinessTaint: Required value: must be specified when `failureAction` is 'Taint'",
        ),
        _gates(
            "a taint is a taint",
            {**_GATE, "readinessTaint": {"key": "a b", "effect": "x"}},
            f'{_G}[0].readinessTaint.key: Invalid value: "a b": name part must consist...',
            f'{_G}[0].readinessTaint.effect: Unsupported value: "x": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
    ],
    ids=str,
)
def test_readiness_gates(one: Case) -> None:
    check_create(Node, NODE, one)


def test_the_longest_condition_type_makes_a_valid_label_key() -> None:
    assert len(_LONGEST) == CONDITION_TYPE_LIMIT == 238
    assert qualified_name(LABEL_PREFIX + _LONGEST) == []


def test_readiness_gates_may_be_added_changed_and_removed() -> None:
    for before, after in ([], [_GATE]), ([_GATE], [{**_GATE, "timeoutSeconds": 5}]), ([_GATE], []):
        check_update(Node, NODE, case("", {_G: after}, before={_G: before}))


@pytest.mark.parametrize(
    ("change", "attribute"),
    [
        pytest.param({_G: [_GATE]}, "readiness_gates", id="readiness gates"),
        pytest.param({"status.declaredFeatures": ["A"]}, "declared_features", id="declared features"),
        pytest.param({"spec.podPreemptionPolicy": {}}, "pod_preemption_policy", id="preemption for resizes"),
    ],
)
def test_fields_of_features_that_are_off_are_dropped_unless_the_node_has_them(
    change: dict[str, Any], attribute: str
) -> None:
    def value(node: Node) -> object:
        return getattr(node.spec, attribute, None) or getattr(node.status, attribute, None)

    off, on = (
        context(),
        context("NodeReadinessGates", "NodeDeclaredFeatures", "InPlacePodVerticalScalingSchedulerPreemption"),
    )
    fresh, kept, allowed = a_node(change), a_node(change), a_node(change)
    drop_disabled_node_fields(fresh, None, off)
    drop_disabled_node_fields(kept, a_node(change), off)
    drop_disabled_node_fields(allowed, None, on)
    assert not value(fresh)
    assert value(kept) == value(allowed) is not None


def test_deprecated_fields_and_odd_networks_are_warned_about() -> None:
    warnings = VALIDATORS[Node].warnings
    assert warnings is not None
    node = a_node(
        {"spec.externalID": "x", "spec.configSource": {}, "spec.podCIDRs": ["10.0.0.1/24", "FD00::/64"]}
    )
    assert warnings(node, None, pod_context()) == [
        "spec.configSource: the feature is removed",
        "spec.externalID: this field is deprecated, and is unused by Kubernetes",
        'spec.podCIDRs[0]: CIDR value "10.0.0.1/24" is ambiguous in this context (should be "10.0.0.0/24" or '
        '"10.0.0.1/32"?)',
        'spec.podCIDRs[1]: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")',
    ]
    check(VALIDATORS[Node].create(a_node(), pod_context()), ())
