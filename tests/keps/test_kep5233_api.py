"""KEP-5233, the API server: readiness gates on nodes, by age and gate of the server, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.apiserver.auth.user import User
from nodeward.store.memory import MemoryStore
from tests.keps.ledger import statement
from tests.keps.served import NODES, STRATEGIC, Tree, a_node, played, served

ON = "NodeReadinessGates=true"
CNI = "network.kubernetes.io/CNIReady"
DISK = "example.com/DiskReady"
GATES = "spec.readinessGates"
TAINT = {"key": "example.com/not-usable", "effect": "NoSchedule"}


def gate(name: str = CNI, **more: Any) -> Tree:
    return {
        "conditionType": name,
        "timeoutSeconds": 180,
        "failureAction": "Taint",
        "readinessTaint": TAINT,
        **more,
    }


def without(tree: Tree, *names: str) -> Tree:
    return {name: value for name, value in tree.items() if name not in names}


@statement("5233-R1")
@played
async def test_gates_are_a_list_merged_by_condition_type() -> None:
    async with served(gates=ON) as api:
        made = (await api.create(NODES, a_node(readinessGates=[gate(CNI), gate(DISK)]))).ok()
        assert made["spec"]["readinessGates"] == [gate(CNI), gate(DISK)]
        change = {"spec": {"readinessGates": [{"conditionType": DISK, "timeoutSeconds": 60}]}}
        after = (await api.send("PATCH", f"{NODES}/n", change, STRATEGIC)).ok()["spec"]["readinessGates"]
        by_type = {each["conditionType"]: each for each in after}
        assert by_type == {CNI: gate(CNI), DISK: gate(DISK, timeoutSeconds=60)}
        added = {"spec": {"readinessGates": [gate("example.com/KernelReady")]}}
        after = (await api.send("PATCH", f"{NODES}/n", added, STRATEGIC)).ok()["spec"]["readinessGates"]
        assert sorted(each["conditionType"] for each in after) == [DISK, "example.com/KernelReady", CNI]
        gone = {"spec": {"readinessGates": [{"$patch": "delete", "conditionType": CNI}]}}
        after = (await api.send("PATCH", f"{NODES}/n", gone, STRATEGIC)).ok()["spec"]["readinessGates"]
        assert sorted(each["conditionType"] for each in after) == [DISK, "example.com/KernelReady"]


@played
async def test_a_node_without_gates_shows_no_such_field() -> None:
    async with served(gates=ON) as api:
        made = (await api.create(NODES, a_node(readinessGates=[]))).ok()
        assert "readinessGates" not in made["spec"]


_LONGEST = "d" * 63 + "." + "d" * 63 + "." + "d" * 48 + "/" + "N" * 61


@statement("5233-R2")
@pytest.mark.parametrize("name", [CNI, "example.com/MyCondition", "a.b.c/x", _LONGEST])
@played
async def test_condition_types_with_a_domain_are_taken(name: str) -> None:
    assert len(_LONGEST) == 238
    async with served(gates=ON) as api:
        (await api.create(NODES, a_node(readinessGates=[gate(name)]))).ok()


@statement("5233-R2")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "Required value"),
        ("Ready", 'must be a domain-prefixed key (such as "acme.io/foo")'),
        ("a b", "name part must consist of alphanumeric characters"),
        ("/x", "prefix part must be non-empty"),
        ("A_.com/x", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("example.com/x/y", "a valid label key must consist of alphanumeric characters"),
        ("d" + _LONGEST, "may not be more than 238 bytes"),
    ],
)
@played
async def test_other_condition_types_are_refused_with_field_and_reason(name: str, part: str) -> None:
    async with served(gates=ON) as api:
        causes = (await api.create(NODES, a_node(readinessGates=[gate(name)]))).causes()
        assert {field for field, _, _ in causes} == {f"{GATES}[0].conditionType"}
        assert any(part in message for _, _, message in causes), causes


@statement("5233-R2")
@played
async def test_a_condition_type_is_named_once() -> None:
    async with served(gates=ON) as api:
        answer = await api.create(NODES, a_node(readinessGates=[gate(), gate(DISK), gate()]))
        message = f'Duplicate value: "{CNI}"'
        assert answer.causes() == [(f"{GATES}[2].conditionType", "FieldValueDuplicate", message)]


_ACTIONS = 'supported values: "Taint", "BypassWithWarning"'


@statement("5233-R3", part="api")
@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (without(gate(), "timeoutSeconds"), ("timeoutSeconds", "FieldValueRequired", "Required value")),
        (
            gate(timeoutSeconds=-1),
            (
                "timeoutSeconds",
                "FieldValueInvalid",
                "Invalid value: -1: must be greater than or equal to 0",
            ),
        ),
        (
            gate(failureAction="TaintNode"),
            ("failureAction", "FieldValueNotSupported", f'Unsupported value: "TaintNode": {_ACTIONS}'),
        ),
        (
            without(gate(), "readinessTaint"),
            (
                "readinessTaint",
                "FieldValueRequired",
                "Required value: must be specified when `failureAction` is 'Taint'",
            ),
        ),
        (
            without(gate(), "readinessTaint", "failureAction"),
            (
                "readinessTaint",
                "FieldValueRequired",
                "Required value: must be specified when `failureAction` is 'Taint'",
            ),
        ),
        (
            gate(readinessTaint={"key": "example.com/x", "effect": "Never"}),
            (
                "readinessTaint.effect",
                "FieldValueNotSupported",
                'Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
            ),
        ),
    ],
)
@played
async def test_timeout_action_and_taint_are_checked(one: Tree, cause: tuple[str, str, str]) -> None:
    async with served(gates=ON) as api:
        field, reason, message = cause
        answer = await api.create(NODES, a_node(readinessGates=[one]))
        assert answer.causes() == [(f"{GATES}[0].{field}", reason, message)]


@statement("5233-R3", part="api")
@pytest.mark.parametrize(
    "one",
    [
        gate(timeoutSeconds=0),
        without(gate(), "failureAction"),
        gate(failureAction="BypassWithWarning"),
        without(gate(failureAction="BypassWithWarning"), "readinessTaint"),
        gate(readinessTaint={"key": "example.com/x", "value": "y", "effect": "NoExecute"}),
    ],
)
@played
async def test_what_is_allowed_is_kept_as_it_was_sent(one: Tree) -> None:
    async with served(gates=ON) as api:
        made = (await api.create(NODES, a_node(readinessGates=[one]))).ok()
        assert made["spec"]["readinessGates"] == [one]


@statement("5233-R4")
@statement("5233-R6", part="api")
@statement("5233-R38", part="api")
@played
async def test_gates_are_set_at_registration_and_added_changed_and_removed_later() -> None:
    async with served(gates=ON) as api:
        (await api.create(NODES, a_node(readinessGates=[gate()]))).ok()
        (await api.create(NODES, a_node("bare"))).ok()
        (await api.merge(f"{NODES}/bare", {"spec": {"readinessGates": [gate()]}})).ok()
        changed = [gate(timeoutSeconds=5, failureAction="BypassWithWarning")]
        for node in ("n", "bare"):
            after = (await api.merge(f"{NODES}/{node}", {"spec": {"readinessGates": changed}})).ok()
            assert after["spec"]["readinessGates"] == changed
            after = (await api.merge(f"{NODES}/{node}", {"spec": {"readinessGates": None}})).ok()
            assert "readinessGates" not in after["spec"]


@statement("5233-R27", part="library")
@played
async def test_a_gate_whose_label_no_kubelet_may_set_is_warned_of_once() -> None:
    async with served(gates=ON) as api:
        restricted = ["node-restriction.kubernetes.io/A", "sub.node-restriction.kubernetes.io/B"]
        made = await api.create(NODES, a_node(readinessGates=[gate(), *(gate(each) for each in restricted)]))
        made.ok()
        assert made.warnings == [
            f"spec.readinessGates[{number}].conditionType: kubelets may not set labels under "
            f'"node-restriction.kubernetes.io": the node will not have the label "readiness-gate.{name}"'
            for number, name in enumerate(restricted, start=1)
        ]
        later = await api.merge(f"{NODES}/n", {"spec": {"unschedulable": True}})
        assert (later.status, later.warnings) == (200, [])


REPORTER = User("reporter")
ROLES = "/apis/rbac.authorization.k8s.io/v1"


@statement("5233-R5")
@played
async def test_a_reporter_with_rights_to_the_status_alone_reports_and_cannot_touch_the_gates() -> None:
    async with served(gates=ON, users={"reporter-token": REPORTER}) as api:
        (await api.create(NODES, a_node(readinessGates=[gate()]))).ok()
        rule = {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
        role = {"metadata": {"name": "reporter"}, "rules": [rule]}
        (await api.create(f"{ROLES}/clusterroles", role)).ok()
        binding = {
            "metadata": {"name": "reporter"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reporter"},
            "subjects": [{"kind": "User", "name": "reporter", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        (await api.create(f"{ROLES}/clusterrolebindings", binding)).ok()
        reporter = api.by("reporter-token")
        condition = {"type": CNI, "status": "True", "reason": "AgentReady", "message": "ok"}
        change = {"status": {"conditions": [condition]}, "spec": {"readinessGates": []}}
        after = (await reporter.send("PATCH", f"{NODES}/n/status", change, STRATEGIC)).ok()
        assert after["spec"]["readinessGates"] == [gate()]
        assert [each["status"] for each in after["status"]["conditions"] if each["type"] == CNI] == ["True"]
        refused = await reporter.merge(f"{NODES}/n", {"spec": {"readinessGates": None}})
        assert refused.status == 403


@statement("5233-R28", part="api")
@played
async def test_the_longest_condition_type_makes_a_label_the_server_takes() -> None:
    async with served(gates=ON) as api:
        (await api.create(NODES, a_node(readinessGates=[gate(_LONGEST)]))).ok()
        label = {f"readiness-gate.{_LONGEST}": "true"}
        after = (await api.merge(f"{NODES}/n", {"metadata": {"labels": label}})).ok()
        assert after["metadata"]["labels"] == label


@statement("5233-R34", part="api")
@statement("5233-R36", part="api")
@played
async def test_nodes_with_and_without_gates_live_side_by_side_and_unreachable_ones_can_be_reported_on() -> (
    None
):
    async with served(gates=ON) as api:
        (await api.create(NODES, a_node("gated", readinessGates=[gate()]))).ok()
        (await api.create(NODES, a_node("plain"))).ok()
        unreachable = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        (await api.send("PATCH", f"{NODES}/gated/status", unreachable, STRATEGIC)).ok()
        last = {"status": {"conditions": [{"type": CNI, "status": "Unknown", "reason": "NoContact"}]}}
        after = (await api.send("PATCH", f"{NODES}/gated/status", last, STRATEGIC)).ok()
        found = {each["type"]: each["status"] for each in after["status"]["conditions"]}
        assert (found["Ready"], found[CNI]) == ("Unknown", "Unknown")
        assert ["readinessGates" in each["spec"] for each in (await api.get(NODES))["items"]] == [True, False]


# What a server makes of the field, by its age and gate.


@pytest.mark.parametrize("version", ["1.37", "1.38"])
@played
async def test_gate_off_drops_new_gates_without_a_word_and_keeps_those_that_are_stored(version: str) -> None:
    store = MemoryStore()
    async with served(version, ON, store=store) as api:
        (await api.create(NODES, a_node("old", readinessGates=[gate()]))).ok()
    async with served(version, store=store) as api:
        made = await api.create(NODES, a_node("new", readinessGates=[gate()]))
        assert ("readinessGates" in made.ok()["spec"], made.warnings) == (False, [])
        kept = (await api.merge(f"{NODES}/old", {"metadata": {"labels": {"a": "b"}}})).ok()
        assert kept["spec"]["readinessGates"] == [gate()]
        changed = (await api.merge(f"{NODES}/old", {"spec": {"readinessGates": [gate(DISK)]}})).ok()
        assert changed["spec"]["readinessGates"] == [gate(DISK)]
        wrong = await api.merge(f"{NODES}/old", {"spec": {"readinessGates": [gate("Ready")]}})
        assert wrong.status == 422
        removed = (await api.merge(f"{NODES}/old", {"spec": {"readinessGates": None}})).ok()
        again = (await api.merge(f"{NODES}/old", {"spec": {"readinessGates": [gate()]}})).ok()
        assert ("readinessGates" in removed["spec"], "readinessGates" in again["spec"]) == (False, False)


@pytest.mark.parametrize("version", ["1.34", "1.36"])
@played
async def test_an_older_server_has_never_heard_of_the_field(version: str) -> None:
    async with served(version) as api:
        warned = await api.create(NODES, a_node(readinessGates=[gate()]))
        assert warned.warnings == ['unknown field "spec.readinessGates"']
        assert "readinessGates" not in warned.ok()["spec"]
        silent = await api.create(f"{NODES}?fieldValidation=Ignore", a_node("m", readinessGates=[gate("?")]))
        assert (silent.status, silent.warnings) == (201, [])
        strict = await api.create(f"{NODES}?fieldValidation=Strict", a_node("o", readinessGates=[gate()]))
        assert strict.status == 400
        assert strict.body["message"] == (
            'Node in version "v1" cannot be handled as a Node: strict decoding error: '
            'unknown field "spec.readinessGates"'
        )
        patched = await api.merge(f"{NODES}/n", {"spec": {"readinessGates": [gate()]}})
        assert patched.warnings == ['unknown field "spec.readinessGates"']
        assert "readinessGates" not in patched.ok()["spec"]


@played
async def test_an_older_server_neither_shows_nor_keeps_what_it_does_not_know() -> None:
    store = MemoryStore()
    async with served("1.37", ON, store=store) as api:
        (await api.create(NODES, a_node(readinessGates=[gate()]))).ok()
    async with served("1.36", store=store) as api:
        assert "readinessGates" not in (await api.get(f"{NODES}/n"))["spec"]
        assert "readinessGates" not in (await api.get(NODES))["items"][0]["spec"]
        after = await api.merge(f"{NODES}/n", {"metadata": {"labels": {"a": "b"}}})
        assert ("readinessGates" in after.ok()["spec"], after.warnings) == (False, [])
