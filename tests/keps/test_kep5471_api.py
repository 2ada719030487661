"""KEP-5471, the API server: which pods, templates and claims it takes, by age and gate, over HTTP."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nodeward.store.memory import MemoryStore
from tests.keps.ledger import statement
from tests.keps.served import CLAIMS, NODES, PODS, Tree, a_claim, a_node, a_pod, played, served

ON = "TaintTolerationComparisonOperators=true"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
KEY = "node.example.com/sla"
AT = "spec.tolerations[0]"

INVALID, UNSUPPORTED = "FieldValueInvalid", "FieldValueNotSupported"
FOUR = 'Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'
TWO = 'Unsupported value: "Gt": supported values: "Equal", "Exists"'


def above(value: str = "900", operator: str = "Gt", **more: Any) -> Tree:
    return {"key": KEY, "operator": operator, "value": value, **more}


def a_deployment(*tolerations: Tree, name: str = "d") -> Tree:
    spec = a_pod(tolerations=list(tolerations))["spec"]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


@statement("5471-T1", part="api")
@pytest.mark.parametrize(("version", "gates"), [("1.34", ""), ("1.37", ""), ("1.37", ON)])
@played
async def test_the_old_operators_are_taken_by_every_server(version: str, gates: str) -> None:
    async with served(version, gates) as api:
        old = [{"key": KEY, "operator": "Equal", "value": "0950"}, {"operator": "Exists"}, {"key": "x"}]
        found = (await api.create(PODS, a_pod(tolerations=old))).ok()
        assert [each.get("operator") for each in found["spec"]["tolerations"][:3]] == [
            "Equal",
            "Exists",
            None,
        ]


@statement("5471-T10", part="api")
@pytest.mark.parametrize("value", ["9223372036854775807", "-9223372036854775808", "0", "-1"])
@played
async def test_numbers_of_64_bits_are_taken_and_kept_as_they_are(value: str) -> None:
    async with served(gates=ON) as api:
        for operator in ("Lt", "Gt"):
            pod = a_pod(operator.lower(), tolerations=[above(value, operator)])
            found = (await api.create(PODS, pod)).ok()
            assert found["spec"]["tolerations"][0] == above(value, operator)


@statement("5471-T13")
@pytest.mark.parametrize("value", ["high", "95.5", "0950", "950", ""])
@played
async def test_the_value_of_a_taint_need_not_be_a_number(value: str) -> None:
    async with served(gates=ON) as api:
        taint = {"key": KEY, "value": value, "effect": "NoSchedule"}
        found = (await api.create(NODES, a_node(taints=[taint]))).ok()
        assert any(each["key"] == KEY for each in found["spec"]["taints"])


@statement("5471-T14")
@pytest.mark.parametrize(
    ("version", "gates", "message"),
    [("1.34", "", TWO), ("1.35", "", FOUR), ("1.36", "", FOUR), ("1.37", "", FOUR), ("1.38", "", FOUR)],
)
@played
async def test_with_the_gate_off_new_pods_with_numbers_are_refused(
    version: str, gates: str, message: str
) -> None:
    async with served(version, gates) as api:
        answer = await api.create(PODS, a_pod(tolerations=[above()]))
        assert answer.causes() == [(f"{AT}.operator", UNSUPPORTED, message)]
        assert (await api.get(PODS))["items"] == []


@pytest.mark.parametrize("version", ["1.35", "1.36", "1.37", "1.38"])
@played
async def test_with_the_gate_on_every_version_that_knows_it_takes_them(version: str) -> None:
    async with served(version, ON) as api:
        (await api.create(PODS, a_pod(tolerations=[above()]))).ok()


CANONICAL = "must be a valid decimal integer in canonical form"


def _refused(value: str, *details: str) -> Any:
    return pytest.param(value, [f'Invalid value: "{value}": {each}' for each in details], id=value or "empty")


def _syntax(value: str) -> str:
    return f'strconv.ParseInt: parsing "{value}": invalid syntax'


@statement("5471-T15", "5471-T16", "5471-T18")
@pytest.mark.parametrize(
    ("value", "messages"),
    [
        _refused("0950", CANONICAL),
        _refused("00", CANONICAL),
        _refused("-01", CANONICAL),
        _refused("-0", CANONICAL),
        _refused("+100", CANONICAL),
        _refused("", "must be non-empty", _syntax("")),
        _refused("-", CANONICAL, _syntax("-")),
        _refused(" 5", CANONICAL, _syntax(" 5")),
        _refused("95.5", CANONICAL, _syntax("95.5")),
        _refused("1e5", CANONICAL, _syntax("1e5")),
        _refused("0x1", CANONICAL, _syntax("0x1")),
        _refused("1_000", CANONICAL, _syntax("1_000")),
        _refused("high", CANONICAL, _syntax("high")),
        _refused(
            "9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'
        ),
        _refused(
            "-9223372036854775809", 'strconv.ParseInt: parsing "-9223372036854775809": value out of range'
        ),
    ],
)
@played
async def test_what_is_no_number_is_refused_with_field_value_and_reason(
    value: str, messages: list[str]
) -> None:
    async with served(gates=ON) as api:
        answer = await api.create(PODS, a_pod(tolerations=[above(value)]))
        assert answer.causes() == [(f"{AT}.value", INVALID, message) for message in messages]


_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@statement("5471-T18")
@statement("5471-T37", part="api")
@pytest.mark.parametrize(
    ("toleration", "field", "reason", "message"),
    [
        (
            {"operator": "Equal", "value": "x"},
            "operator",
            INVALID,
            'Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values '
            'and all keys"',
        ),
        (
            {"key": KEY, "operator": "Exists", "tolerationSeconds": 5},
            "effect",
            INVALID,
            "Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            {"key": KEY, "operator": "Exists", "value": "x"},
            "operator",
            INVALID,
            "Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
        ),
        (
            {"key": KEY, "operator": "Equal", "value": "a b"},
            "operator",
            INVALID,
            f'Invalid value: "a b": {_LABEL_VALUE}',
        ),
        (
            {"key": KEY, "operator": "Ge", "value": "5"},
            "operator",
            UNSUPPORTED,
            'Unsupported value: "Ge": supported values: "Equal", "Exists"',
        ),
        (
            {"key": KEY, "operator": "Exists", "effect": "Never"},
            "effect",
            UNSUPPORTED,
            'Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
    ],
)
@played
async def test_other_mistakes_get_their_own_words(
    toleration: Tree, field: str, reason: str, message: str
) -> None:
    async with served(gates=ON) as api:
        answer = await api.create(PODS, a_pod(tolerations=[toleration]))
        assert answer.causes() == [(f"{AT}.{field}", reason, message)]


@statement("5471-T21", part="api")
@pytest.mark.parametrize("key", ["cost", "example.com/anything", "node.kubernetes.io/whatever"])
@played
async def test_no_key_is_special(key: str) -> None:
    async with served(gates=ON) as api:
        (await api.create(PODS, a_pod(tolerations=[{**above(), "key": key}]))).ok()


@statement("5471-T22", part="api")
@played
async def test_claims_take_numbers_for_devices_under_the_same_gate() -> None:
    wear = {"key": "example.com/wear", "operator": "Lt", "value": "90"}
    field = "spec.devices.requests[0].exactly.tolerations[0]"
    async with served(gates=ON) as api:
        (await api.create(CLAIMS, a_claim(tolerations=[wear]))).ok()
        answer = await api.create(CLAIMS, a_claim("bad", tolerations=[{**wear, "value": "090"}]))
        assert answer.causes() == [(f"{field}.value", INVALID, f'Invalid value: "090": {CANONICAL}')]
    async with served() as api:
        answer = await api.create(CLAIMS, a_claim(tolerations=[wear]))
        message = 'Unsupported value: "Lt": supported values: "Equal", "Exists"'
        assert answer.causes() == [(f"{field}.operator", UNSUPPORTED, message)]


@statement("5471-T25", part="api")
@statement("5471-T26")
@statement("5471-T27", part="api")
@played
async def test_rollback_keeps_stored_pods_updatable_and_deletable_and_reenabling_takes_new_ones() -> None:
    store = MemoryStore()
    async with served(gates=ON, store=store) as api:
        (await api.create(PODS, a_pod("old", tolerations=[above()]))).ok()
        (await api.create(PODS, a_pod("plain"))).ok()
    async with served(store=store) as api:
        labelled = (await api.merge(f"{PODS}/old", {"metadata": {"labels": {"touched": "yes"}}})).ok()
        assert labelled["spec"]["tolerations"][0] == above()
        more = [*labelled["spec"]["tolerations"], above("5", "Lt")]
        (await api.merge(f"{PODS}/old", {"spec": {"tolerations": more}})).ok()
        plain = (await api.get(f"{PODS}/plain"))["spec"]["tolerations"]
        refused = await api.merge(f"{PODS}/plain", {"spec": {"tolerations": [*plain, above()]}})
        assert refused.causes() == [(f"spec.tolerations[{len(plain)}].operator", UNSUPPORTED, FOUR)]
        assert (await api.create(PODS, a_pod("new", tolerations=[above()]))).status == 422
        (await api.send("DELETE", f"{PODS}/old?gracePeriodSeconds=0")).ok()
    async with served(gates=ON, store=store) as api:
        (await api.create(PODS, a_pod("new", tolerations=[above()]))).ok()


@statement("5471-T26")
@played
async def test_templates_that_use_numbers_stay_updatable_with_the_gate_off_and_others_may_not_start() -> None:
    store = MemoryStore()
    async with served(gates=ON, store=store) as api:
        (await api.create(DEPLOYMENTS, a_deployment(above()))).ok()
        (await api.create(DEPLOYMENTS, a_deployment({"operator": "Exists"}, name="plain"))).ok()
    async with served(store=store) as api:
        (await api.merge(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}})).ok()
        template = {"template": {"spec": {"tolerations": [above()]}}}
        refused = await api.merge(f"{DEPLOYMENTS}/plain", {"spec": template})
        assert refused.causes() == [("spec.template.spec.tolerations[0].operator", UNSUPPORTED, FOUR)]


@statement("5471-T28", part="api")
@played
async def test_refusals_show_in_the_counters_of_the_server() -> None:
    async with served() as api:
        for _ in range(3):
            assert (await api.create(PODS, a_pod(tolerations=[above()]))).status == 422
        text = await api.text("/metrics")
        found = re.findall(r'apiserver_request_total\{[^}]*code="422"[^}]*resource="pods"[^}]*\} (\S+)', text)
        assert [float(each) for each in found] == [3.0]


@statement("5471-T29", part="api")
@played
async def test_a_newer_server_takes_what_an_older_one_of_the_same_cluster_does_not() -> None:
    store = MemoryStore()
    async with served("1.36", ON, store=store) as api:
        (await api.create(PODS, a_pod(tolerations=[above()]))).ok()
    async with served("1.34", store=store) as api:
        assert (await api.get(f"{PODS}/p"))["spec"]["tolerations"][0] == above()
        assert (await api.create(PODS, a_pod("q", tolerations=[above()]))).status == 422


@played
async def test_on_a_pod_that_exists_tolerations_are_only_added() -> None:
    async with served(gates=ON) as api:
        pod = (await api.create(PODS, a_pod(tolerations=[above()]))).ok()
        changed = [above("901"), *pod["spec"]["tolerations"][1:]]
        refused = await api.merge(f"{PODS}/p", {"spec": {"tolerations": changed}})
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        assert ("spec.tolerations", "FieldValueForbidden", message) in refused.causes()


@pytest.mark.parametrize(("version", "gates", "message"), [("1.37", ON, FOUR), ("1.34", "", TWO)])
@played
async def test_runtime_classes_do_not_take_numbers_even_with_the_gate_on(
    version: str, gates: str, message: str
) -> None:
    async with served(version, gates) as api:
        runtime = {"metadata": {"name": "r"}, "handler": "h", "scheduling": {"tolerations": [above()]}}
        answer = await api.create(RUNTIMES, runtime)
        assert answer.causes() == [("scheduling.tolerations[0].operator", UNSUPPORTED, message)]
