"""Answers of a real API server to bad pods and nodes, word for word."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import invalid
from nodeward.base.fielderror import FieldError
from nodeward.validation.registry import VALIDATORS
from tests.api.recorded import recorded_answer, recorded_body
from tests.validation.pods import pod_context
from tests.validation.tables import defaulted


def _is_answered_as_recorded(sample: dict[str, Any], kind: str, errors: list[FieldError]) -> None:
    recorded = sample["body"]
    status = invalid("", kind, recorded["details"]["name"], errors).status
    assert status.message == recorded["message"]
    assert status.details is not None
    causes = [{"reason": c.reason, "message": c.message, "field": c.field} for c in status.details.causes]
    assert causes == recorded["details"]["causes"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("invalid tolerations: 422 with causes", id="tolerations with bad numbers and operators"),
        pytest.param("invalid pod: several causes", id="a pod with several faults"),
    ],
)
def test_a_bad_pod_is_refused_in_the_words_of_kubernetes(name: str) -> None:
    sample = recorded_answer(name)
    body = copy.deepcopy(sample["request"]["body"])
    body["metadata"]["namespace"] = "samples"
    errors = VALIDATORS[Pod].create(defaulted(Pod, body), pod_context())
    _is_answered_as_recorded(sample, "Pod", errors)


def test_a_forbidden_change_is_shown_as_the_same_diff() -> None:
    sample = recorded_answer("merge patch immutable field")
    stored = recorded_body("create pod (defaults shown)")
    stored["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "7",
        "managedFields": [],
    }
    wanted = copy.deepcopy(stored)
    wanted["spec"] |= sample["request"]["body"]["spec"]
    errors = VALIDATORS[Pod].update(defaulted(Pod, wanted), defaulted(Pod, stored), pod_context())
    _is_answered_as_recorded(sample, "Pod", errors)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("node status: declaredFeatures unsorted", id="features out of order"),
        pytest.param("node status: declaredFeatures duplicate", id="a feature twice"),
        pytest.param("node status: declaredFeatures bad name", id="a feature with a bad name"),
    ],
)
def test_bad_declared_features_are_refused_in_the_words_of_kubernetes(name: str) -> None:
    sample = recorded_answer(name)
    stored = {"metadata": {"name": "n1", "resourceVersion": "7"}}
    status = VALIDATORS[Node].status
    assert status is not None
    new = defaulted(Node, {**stored, **sample["request"]["body"]})
    _is_answered_as_recorded(sample, "Node", status(new, defaulted(Node, stored), pod_context()))


def test_a_bad_taint_is_refused_in_the_words_of_kubernetes() -> None:
    sample = recorded_answer("node spec: bad taint")
    stored = {"metadata": {"name": "n1", "resourceVersion": "7"}}
    new = defaulted(Node, {**stored, **sample["request"]["body"]})
    errors = VALIDATORS[Node].update(new, defaulted(Node, stored), pod_context())
    _is_answered_as_recorded(sample, "Node", errors)
