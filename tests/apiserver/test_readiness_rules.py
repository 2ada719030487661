"""Readiness rules over the API: what is filled in, refused, warned of, selected and shown."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

RULES = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"
MERGE = "application/merge-patch+json"
GOOD: dict[str, Any] = {
    "conditions": [{"type": "example.com/CNIReady", "requiredStatus": "True"}],
    "enforcementMode": "continuous",
    "taint": {"key": "readiness.k8s.io/network", "effect": "NoSchedule"},
    "nodeSelector": {"matchLabels": {"pool": "a"}},
}


def rule(name: str = "net", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
        "kind": "NodeReadinessRule",
        "metadata": {"name": name},
        "spec": {**copy.deepcopy(GOOD), **spec},
    }


def run(main: Callable[[Caller], Awaitable[None]]) -> None:
    async def inner() -> None:
        async with running() as server:
            await main(Caller.of(server))

    asyncio.run(inner())


def test_a_rule_is_stored_with_its_default_and_its_generation_counts_changes_of_the_spec() -> None:
    async def main(caller: Caller) -> None:
        code, made = await caller.json("POST", RULES, rule())
        assert (code, made["spec"]["conditionPolicy"], made["metadata"]["generation"]) == (201, "allOf", 1)
        status = {"status": {"observedGeneration": 1, "appliedNodes": ["n"]}, "spec": {"dryRun": True}}
        code, told = await caller.json("PATCH", f"{RULES}/net/status", status, content_type=MERGE)
        assert (code, told["status"]["appliedNodes"], "dryRun" in told["spec"]) == (200, ["n"], False)
        dry = {"spec": {"dryRun": True}}
        code, changed = await caller.json("PATCH", f"{RULES}/net", dry, content_type=MERGE)
        assert (code, changed["metadata"]["generation"], changed["status"]["appliedNodes"]) == (200, 2, ["n"])

    run(main)


_LONG = "readiness.k8s.io/" + "a" * 64


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"conditions": []}, "spec.conditions", "must have at least 1 item"),
        ({"conditions": [{"type": "a"}]}, "spec.conditions[0].requiredStatus", "Required value"),
        (
            {"conditions": [{"type": "a", "requiredStatus": "Yes"}]},
            "spec.conditions[0].requiredStatus",
            'supported values: "True", "False", "Unknown"',
        ),
        (
            {"conditions": [{"type": "a", "requiredStatus": "True"}] * 2},
            "spec.conditions[1]",
            "Duplicate value",
        ),
        (
            {"conditions": [{"type": f"t{n}", "requiredStatus": "True"} for n in range(33)]},
            "spec.conditions",
            "must have at most 32 items",
        ),
        (
            {"conditions": [{"type": "a" * 317, "requiredStatus": "True"}]},
            "spec.conditions[0].type",
            "may not be more than 316 bytes",
        ),
        ({"enforcementMode": ""}, "spec.enforcementMode", "Required value"),
        (
            {"enforcementMode": "once"},
            "spec.enforcementMode",
            'supported values: "bootstrap-only", "continuous"',
        ),
        ({"nodeSelector": {}}, "spec.nodeSelector", "nodeSelector must not be empty"),
        ({"conditionPolicy": "none"}, "spec.conditionPolicy", 'supported values: "allOf", "anyOf"'),
        ({"taint": {}}, "spec.taint.key", "Required value"),
        (
            {"taint": {"key": "example.com/a", "effect": "NoSchedule"}},
            "spec.taint.key",
            "taint key must start with 'readiness.k8s.io/'",
        ),
        (
            {"taint": {"key": "readiness.k8s.io/a/b", "effect": "NoSchedule"}},
            "spec.taint.key",
            "taint key must have exactly one '/' separator (prefix/name format)",
        ),
        (
            {"taint": {"key": _LONG, "effect": "NoSchedule"}},
            "spec.taint.key",
            "taint key name part must be 1-63 characters",
        ),
        (
            {"taint": {"key": "readiness.k8s.io/-a", "effect": "NoSchedule"}},
            "spec.taint.key",
            "must start and end with an alphanumeric character",
        ),
        (
            {"taint": {"key": "readiness.k8s.io/a", "effect": "NoSchedule", "value": "v" * 64}},
            "spec.taint.value",
            "taint value length must be at most 63 characters",
        ),
        (
            {"taint": {"key": "readiness.k8s.io/a", "effect": "Never"}},
            "spec.taint.effect",
            "taint effect must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
        ),
        (
            {"enforcementMode": "bootstrap-only", "conditionPolicy": "anyOf"},
            "spec.conditionPolicy",
            "anyOf conditionPolicy is not supported with bootstrap-only enforcementMode",
        ),
        (
            {
                "enforcementMode": "bootstrap-only",
                "conditions": [{"type": "a", "requiredStatus": "True", "defaultStatus": "True"}],
            },
            "spec.conditions[0].defaultStatus",
            "defaultStatus should not be used with bootstrap-only enforcementMode",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_the_field(
    changes: dict[str, Any], field: str, said: str
) -> None:
    async def main(caller: Caller) -> None:
        code, answer = await caller.json("POST", RULES, rule(**changes))
        assert code == 422, answer
        causes = {each["field"]: each["message"] for each in answer["details"]["causes"]}
        assert said in causes[field]

    run(main)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conditions": [{"type": "other", "requiredStatus": "True"}]}, "conditions is immutable"),
        ({"enforcementMode": "bootstrap-only"}, "enforcementMode is immutable"),
        ({"taint": {"key": "readiness.k8s.io/other"}}, "taint key is immutable"),
        ({"taint": {"effect": "NoExecute"}}, "taint effect is immutable"),
        ({"taint": {"value": "v"}}, "taint value is immutable"),
        ({"nodeSelector": {"matchLabels": {"pool": "b"}}}, "nodeSelector is immutable"),
        ({"conditionPolicy": "anyOf"}, "conditionPolicy is immutable"),
    ],
)
def test_nothing_but_the_dry_run_can_be_changed(changes: dict[str, Any], said: str) -> None:
    async def main(caller: Caller) -> None:
        assert (await caller.json("POST", RULES, rule()))[0] == 201
        code, answer = await caller.json("PATCH", f"{RULES}/net", {"spec": changes}, content_type=MERGE)
        assert code == 422
        assert said in answer["message"]
        policy = {"spec": {"conditionPolicy": None, "dryRun": True}}
        assert (await caller.json("PATCH", f"{RULES}/net", policy, content_type=MERGE))[0] == 200

    run(main)


@pytest.mark.parametrize(
    ("changes", "is_refused"),
    [
        ({}, True),
        ({"nodeSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}, True),
        ({"nodeSelector": {"matchLabels": {"pool": "b"}}}, False),
        (
            {"nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}},
            False,
        ),
        ({"taint": {"key": "readiness.k8s.io/network", "effect": "NoExecute"}}, False),
        ({"taint": {"key": "readiness.k8s.io/disk", "effect": "NoSchedule"}}, False),
    ],
)
def test_two_rules_never_own_the_same_taint_on_the_same_nodes(
    changes: dict[str, Any], is_refused: bool
) -> None:
    async def main(caller: Caller) -> None:
        assert (await caller.json("POST", RULES, rule()))[0] == 201
        code, answer = await caller.json("POST", RULES, rule("second", **changes))
        assert code == (422 if is_refused else 201)
        if is_refused:
            assert answer["details"]["causes"][0]["field"] == "spec.taint.key"
            assert (
                "conflicts with existing rule 'net' - same taint key 'readiness.k8s.io/network' and effect "
                "'NoSchedule' with overlapping node selectors"
            ) in answer["message"]

    run(main)


@pytest.mark.parametrize(
    ("effect", "mode", "said"),
    [
        ("NoExecute", "continuous", "CAUTION: NoExecute with continuous mode evicts pods"),
        ("NoExecute", "bootstrap-only", "NOTE: NoExecute will evict existing pods"),
        ("NoSchedule", "continuous", ""),
    ],
)
def test_whoever_makes_a_rule_that_drives_pods_off_is_told(effect: str, mode: str, said: str) -> None:
    async def main(caller: Caller) -> None:
        taint = {"key": "readiness.k8s.io/network", "effect": effect}
        response = await caller.send("POST", RULES, rule(taint=taint, enforcementMode=mode))
        warning = response.headers.get("warning", "")
        assert response.status == 201
        assert said in warning
        assert bool(warning) is bool(said)

    run(main)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.enforcementMode=continuous", ["dry", "net"]),
        ("spec.taint.key=readiness.k8s.io/disk", ["dry"]),
        ("spec.dryRun=true", ["dry"]),
        ("spec.dryRun=false", ["net"]),
    ],
)
def test_rules_are_selected_by_their_fields(selector: str, found: list[str]) -> None:
    async def main(caller: Caller) -> None:
        await caller.json("POST", RULES, rule())
        taint = {"key": "readiness.k8s.io/disk", "effect": "NoSchedule"}
        await caller.json("POST", RULES, rule("dry", taint=taint, dryRun=True))
        code, answer = await caller.json("GET", f"{RULES}?fieldSelector={selector}")
        assert (code, [each["metadata"]["name"] for each in answer["items"]]) == (200, found)

    run(main)
