"""Expressions with the answers a run of Kubernetes 1.37 gave: compile results, costs, values.

`SELECTION` is our own choice and lives beside this module; the large set is in `../shared` and is compared when it is
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodeward.base.quantity import Quantity
from nodeward.cel.device import (
    COST_LIMIT,
    STORED_EXPRESSIONS,
    as_attribute,
    as_match,
    compile_derived_attribute,
    compile_selector,
    device_variables,
    new_expressions,
    parse_version,
)
from nodeward.cel.program import CompileErrors, Program
from nodeward.cel.values import EvaluationError

_HERE = Path(__file__).resolve().parent
SELECTION = _HERE / "selection.jsonl"
SHARED = _HERE.parents[2] / "shared" / "reference" / "dra-cases"


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of cases; skips loudly when it is missing."""
    if not path.exists():
        missing = (
            f"NOT COMPARED with real Kubernetes: {path.name} is missing in ../shared/reference/dra-cases"
        )
        pytest.skip(missing)
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_devices() -> dict[str, dict[str, Any]]:
    """Return what selectors see of the devices the cases name."""
    return {each["name"]: _variables(each["device"]) for each in read(_HERE / "devices.jsonl")}


def _variables(device: dict[str, Any]) -> dict[str, Any]:
    attributes = {name: _value(each) for name, each in device.get("attributes", {}).items()}
    capacity = {name: Quantity.parse(each["value"]) for name, each in device.get("capacity", {}).items()}
    return device_variables(device["driver"], attributes, capacity, device.get("allowMultipleAllocations"))


def _value(attribute: dict[str, Any]) -> Any:
    for kind, value in attribute.items():
        if kind == "version":
            return parse_version(value)
        return [parse_version(each) for each in value] if kind == "versions" else value
    return []


@dataclass(frozen=True)
class Compiled:
    """A compile result in the words of the cases."""

    answer: dict[str, Any]
    program: Program | None


def compile_case(case: dict[str, Any], environment: str) -> Compiled:
    """Compile as the API server does (`new`) or as the scheduler does (`stored`)."""
    run = compile_derived_attribute if case.get("derived") else compile_selector
    try:
        program = run(case["expr"], STORED_EXPRESSIONS if environment == "stored" else new_expressions())
    except CompileErrors as error:
        internal = {"errorType": "InternalError"} if error.is_internal else {}
        return Compiled({"error": str(error), **internal}, None)
    return Compiled({"type": str(program.result_type), "maxCost": program.max_cost}, program)


def differences(case: dict[str, Any], devices: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Say in what our answers differ from the recorded ones."""
    new, stored = compile_case(case, "new"), compile_case(case, "stored")
    expected = case["new"]
    if new.answer != expected:
        yield f"{case['expr']}: new: {new.answer}, not {expected}"
    if case["stored"] != "new":
        expected = case["stored"]
    if stored.answer != expected:
        yield f"{case['expr']}: stored: {stored.answer}, not {expected}"
    elif stored.program is not None:
        for result in case["results"]:
            yield from _result_differences(case, stored.program, result, devices[result["device"]])


def _result_differences(
    case: dict[str, Any], program: Program, result: dict[str, Any], device: dict[str, Any]
) -> Iterator[str]:
    if "attribute" in result:
        expected: tuple[str, Any] = ("value", _value(result["attribute"]))
    else:
        expected = ("error", result["error"]) if "error" in result else ("value", result["value"])
    convert = as_attribute if case.get("derived") else as_match
    cost: int | None = None
    try:
        value, cost = program.evaluate_with_cost(device, COST_LIMIT)
        found = ("value", convert(value))
    except EvaluationError as error:
        found, cost = ("error", str(error)), cost if error.cost is None else error.cost
    if found != expected:
        yield f"{case['expr']} of {result['device']}: {found}, not {expected}"
    if result.get("cost") is not None and cost != result["cost"]:
        yield f"{case['expr']} of {result['device']}: costs {cost}, not {result['cost']}"
    if program.max_cost > COST_LIMIT:
        return
    try:
        found = ("value", convert(program.evaluate(device, COST_LIMIT)))
    except EvaluationError as error:
        found = ("error", str(error))
    if found != expected:
        yield f"{case['expr']} of {result['device']}, fast: {found}, not {expected}"
