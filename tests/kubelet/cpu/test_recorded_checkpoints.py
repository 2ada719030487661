"""Every recorded checkpoint is written, read and refused as Kubernetes 1.37 does."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.state_file import StateFileError, decode, encode, refusal
from nodeward.kubelet.cpu.static_policy import InvalidState, StaticPolicy
from tests.kubelet.cpu.recorded_cases import (
    recorded_cases,
    recorded_options,
    recorded_state,
    recorded_topologies,
    shown_state,
)

#: What the Go library says about a text that is not JSON of the right shape; ours says it in other words.
GO_WORDS = ("json:", "invalid character", "unexpected end")


def test_every_recorded_state_is_written_with_the_same_bytes() -> None:
    cases = [case for case in recorded_cases("checkpoint-write.jsonl") if case["format"] == "v4"]
    wrong = [
        case
        for case in cases
        if encode(recorded_state(case["state"]), case["state"]["policy"]) != case["file"]
    ]
    assert wrong == []
    assert len(cases) == 36


@pytest.mark.parametrize(("version", "count"), [("v2", 12), ("v3", 12), ("v4", 36)])
def test_every_recorded_file_is_read_in_its_version(version: str, count: int) -> None:
    cases = [case for case in recorded_cases("checkpoint-write.jsonl") if case["format"] == version]
    wrong = []
    for case in cases:
        policy = case["state"]["policy"]
        read = decode(case["file"], policy, keeps_baselines="baselines" in case["state"], with_pod_level=True)
        if shown_state(read) | {"policy": policy} != case["state"]:
            wrong.append((case, read))
    assert wrong == []
    assert len(cases) == count


def _load(case: dict[str, Any]) -> dict[str, Any]:
    """Start a node with the file of a case."""
    gates = case.get("gates", ())
    with_pod_level = "PodLevelResourceManagers" in gates
    keeps_baselines = "InPlacePodVerticalScalingExclusiveCPUs" in gates
    state, file = CPUState(keeps_baselines=keeps_baselines), case.get("file")
    if file is not None:
        try:
            state = decode(
                file, case["policy"], keeps_baselines=keeps_baselines, with_pod_level=with_pod_level
            )
        except StateFileError as error:
            return {"stage": "load", "err": refusal("STATE_DIR/cpu_manager_state", error)}
    if case["policy"] == "static":
        reserved = CPUSet.parse(case["reservedList"])
        policy = StaticPolicy(
            recorded_topologies()[case["topo"]],
            recorded_options(case.get("options", ())),
            reserved_count=len(reserved),
            reserved=reserved,
            with_pod_level=with_pod_level,
        )
        try:
            policy.start(state)
        except InvalidState as error:
            return {"stage": "start", "err": str(error)}
    return {"stage": "ok", "state": shown_state(state), "file": encode(state, case["policy"])}


def _agrees(case: dict[str, Any]) -> bool:
    answer = _load(case)
    if any(words in case.get("err", "") for words in GO_WORDS):
        return bool(answer["stage"] == case["stage"])
    expected = {key: case[key] for key in ("stage", "err" if "err" in case else "state")}
    if "fileAfter" in case:
        expected["file"] = case["fileAfter"]
    return {key: answer.get(key) for key in expected} == expected


def test_every_recorded_file_is_accepted_or_refused_with_the_same_words() -> None:
    cases = recorded_cases("checkpoint-load.jsonl")
    assert [(case, _load(case)) for case in cases if not _agrees(case)] == []
    assert len(cases) == 154
