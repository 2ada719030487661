"""Expressions compile, evaluate and cost as a run of Kubernetes 1.37 recorded it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cel.recorded_expressions import SELECTION, SHARED, differences, read, read_devices


@pytest.fixture(scope="module")
def devices() -> dict[str, dict[str, Any]]:
    return read_devices()


def test_the_selection_agrees_with_kubernetes(devices: dict[str, dict[str, Any]]) -> None:
    cases = read(SELECTION)
    assert len(cases) > 100
    found = [text for case in cases for text in differences(case, devices)]
    assert not found, "\n".join(found)


def test_every_shared_case_agrees_with_kubernetes(devices: dict[str, dict[str, Any]]) -> None:
    cases = [case for case in read(SHARED / "cel.jsonl") if case["group"] != "cost"]
    assert len(cases) > 600
    found = [text for case in cases for text in differences(case, devices)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_shared_case_about_costs_agrees_with_kubernetes(devices: dict[str, dict[str, Any]]) -> None:
    cases = [case for case in read(SHARED / "cel.jsonl") if case["group"] == "cost"]
    assert len(cases) > 30
    for case in cases:
        case["results"] = case["results"][:1]  # the value does not depend on the device
    found = [text for case in cases for text in differences(case, devices)]
    assert not found, "\n".join(found)
