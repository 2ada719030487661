"""Answers recorded from a real Kubernetes 1.37 API server, kept next to the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def _load(file_name: str) -> Any:
    path = _REFERENCE / file_name
    if not path.exists():
        pytest.skip(f"NOT COMPARED with real Kubernetes: {file_name} is missing in ../shared/reference")
    return json.loads(path.read_bytes())


def recorded_answer(name: str) -> dict[str, Any]:
    """The sample called `name`: request, status, headers and body."""
    sample: dict[str, Any] = next(s for s in _load("http-samples-1.37.json") if s["name"] == name)
    return sample


def recorded_body(name: str) -> dict[str, Any]:
    body: dict[str, Any] = recorded_answer(name)["body"]
    return body


def recorded_shapes() -> dict[str, Any]:
    """Every OpenAPI definition, without descriptions."""
    shapes: dict[str, Any] = _load("kubernetes-1.37-shapes.json")["definitions"]
    return shapes


def samples() -> list[dict[str, Any]]:
    """All recorded requests and answers, in the order they were made."""
    recorded: list[dict[str, Any]] = _load("http-samples-1.37.json")
    return recorded
