"""Which operations of a driver a claim does without: the rules, and 150 claims as a kubelet of 1.37 judged them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.features.gates import Gates
from nodeward.kubelet.dra.skipping import (
    PREPARE,
    UNPREPARE,
    SkipSupport,
    disabled_text,
    skipped_operations,
    skips,
)

CASES = Path(__file__).resolve().parents[4] / "shared" / "reference" / "dra-cases" / "kubelet-skip.jsonl"


def result(
    skip: Any = None, driver: str = "gpu.example.com", device: str = "d"
) -> DeviceRequestAllocationResult:
    tree = {"request": "r", "driver": driver, "pool": "p", "device": device}
    return from_tree(
        tree if skip is None else tree | {"skipNodeOperations": skip}, DeviceRequestAllocationResult
    )


@pytest.fixture(scope="module")
def recorded_claims() -> list[dict[str, Any]]:
    if not CASES.exists():
        pytest.skip(
            "NOT COMPARED with real Kubernetes: kubelet-skip.jsonl is missing in ../shared/reference/dra-cases"
        )
    return [json.loads(line) for line in CASES.read_text().splitlines()]


def test_every_recorded_claim_is_judged_as_by_kubernetes(recorded_claims: list[dict[str, Any]]) -> None:
    assert len(recorded_claims) >= 150
    for case in recorded_claims:
        results = [
            from_tree({"request": "r", **each}, DeviceRequestAllocationResult) for each in case["results"]
        ]
        judged = {
            driver: {
                "operations": list(operations),
                "skipPrepare": skips(operations, PREPARE),
                "skipUnprepare": skips(operations, UNPREPARE),
            }
            for driver, operations in skipped_operations(results).items()
        }
        assert judged == case["gateOn"], case["id"]
        said = disabled_text(results)
        if case["gateOff"] == "gateOn":
            assert said == "", case["id"]
        else:
            assert said.endswith(case["gateOff"]["error"]), case["id"]


@pytest.mark.parametrize(
    ("said", "operations"),
    [
        pytest.param([True, True], ("*",), id="all true"),
        pytest.param([True, False], (), id="one false"),
        pytest.param([True, None], (), id="one absent"),
        pytest.param([None], (), id="absent"),
        pytest.param([True, ["*"]], ("*",), id="both forms"),
        pytest.param([True, [UNPREPARE]], (UNPREPARE,), id="true covers a named operation"),
        pytest.param([False, [UNPREPARE]], (), id="false covers nothing"),
    ],
)
def test_an_operation_is_skipped_only_if_all_results_of_the_driver_say_so(
    said: list[Any], operations: tuple[str, ...]
) -> None:
    assert skipped_operations([result(each) for each in said]) == {"gpu.example.com": operations}


def test_each_driver_is_judged_alone() -> None:
    both = [result(True, "a.example.com"), result(None, "b.example.com")]
    assert skipped_operations(both) == {"a.example.com": ("*",), "b.example.com": ()}


@pytest.mark.parametrize(
    ("said", "gate"),
    [
        pytest.param([True, False], "DRAOptionalNodePreparation", id="a boolean, even if it has no effect"),
        pytest.param([["*"]], "DRAOptionalNodeOperations", id="a list"),
        pytest.param([["*"], None], "", id="a list without effect"),
        pytest.param([False, None], "", id="nothing is skipped"),
    ],
)
def test_a_kubelet_whose_gate_is_off_names_it(said: list[Any], gate: str) -> None:
    text = disabled_text([result(each) for each in said])
    wanted = f"DRAOptionalNodePreparationDisabled: {gate} feature gate is disabled on kubelet"
    assert text == (wanted if gate else "")


@pytest.mark.parametrize(
    ("version", "gates", "support"),
    [
        ("1.36", "", SkipSupport.UNKNOWN),
        ("1.37", "", SkipSupport.OFF),
        ("1.37", "DRAOptionalNodePreparation=true", SkipSupport.ON),
        ("1.37", "DRAOptionalNodeOperations=true", SkipSupport.ON),
    ],
)
def test_version_and_gate_say_what_a_kubelet_makes_of_the_field(
    version: str, gates: str, support: SkipSupport
) -> None:
    assert SkipSupport.of(Gates.of(version, gates)) is support
