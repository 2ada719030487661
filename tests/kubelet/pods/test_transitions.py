"""The transition tables of a pod's life: what happens is in them, and what is in them happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from nodeward.api.core_v1.container import Probe
from nodeward.kubelet.pods.container_life import ContainerLife
from nodeward.kubelet.pods.lifecycle import CONTAINER_TRANSITIONS, SANDBOX_TRANSITIONS, STOP_TRANSITIONS
from nodeward.kubelet.pods.state import PodState
from tests.kubelet.pods.driver import Node, a_pod, container, hooked, sidecar
from tests.kubelet.pods.test_adoption import found, lived, was
from tests.kubelet.pods.test_any_order import AnyLife

WATCHED = (
    (PodState, "sandbox", SANDBOX_TRANSITIONS),
    (ContainerLife, "state", CONTAINER_TRANSITIONS),
    (ContainerLife, "stop", STOP_TRANSITIONS),
)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[Any]]:
    """Every change of state that happens in a test, by the name of what changes."""
    changes: dict[str, set[Any]] = {}
    for owner, name, _ in WATCHED:
        monkeypatch.setattr(owner, name, _noting(owner.__dict__[name], changes.setdefault(name, set())))
    return changes


def _noting(slot: Any, changes: set[Any]) -> property:
    def change(self: Any, value: Any) -> None:
        try:
            before = slot.__get__(self)
        except AttributeError:
            before = value  # it is made
        if before is not value:
            changes.add((before, value))
        slot.__set__(self, value)

    return property(slot.__get__, change)


def test_whatever_happens_in_whatever_order_is_in_the_tables(seen: dict[str, set[Any]]) -> None:
    run_state_machine_as_test(
        AnyLife, settings=settings(max_examples=40, stateful_step_count=40, deadline=None)
    )
    for _, name, table in WATCHED:
        assert seen[name] <= set(table), f"{name}: a change that is not in the table"


def test_every_row_of_the_tables_happens(seen: dict[str, set[Any]]) -> None:
    _starts_and_ends()
    _fails_and_starts_over()
    _is_found()
    _stops_early()
    for _, name, table in WATCHED:
        assert seen[name] == set(table), name


def _starts_and_ends() -> None:
    node = Node(a_pod(hooked("c", pre_stop=True), inits=[sidecar("s")])).start()
    node.exit("c", 1)
    node.delete()
    node.run_for(60)


def _fails_and_starts_over() -> None:
    node = Node(a_pod())
    node.sandbox_fails = "no"
    node.start()
    node.sandbox_fails = ""
    node.failing["c"] = ("ErrImagePull", "no")
    node.run_for(30)
    del node.failing["c"]
    node.run_for(60)
    node.failing["c"] = ("CreateContainerError", "no")
    node.exit("c", 1)
    node.run_for(60)


def _is_found() -> None:
    Node(a_pod(), found=found(was("c"))).start()
    Node(lived(a_pod(inits=[container("i")])), found=None).start()


def _stops_early() -> None:
    refused = Node(a_pod())
    refused.do(refused.life.reject("OutOfcpu", "full", refused.now))
    waiting = Node(a_pod())
    waiting.held = {"sandbox"}
    waiting.start()
    waiting.delete(1)
    starting = Node(a_pod())
    starting.held = {"c"}
    starting.start()
    starting.delete(1)
    starting.run_for(10)
    hanging = Node(a_pod(hooked("c", pre_stop=True)))
    hanging.held = {"preStop"}
    hanging.start()
    hanging.delete()
    hanging.exit("c", 1)
    queued = Node(a_pod(inits=[sidecar("s", liveness_probe=Probe())]))
    queued.stubborn = {"c"}
    queued.start()
    queued.delete()
    queued.exit("s", 1)
