"""A priority class becomes a number."""

from __future__ import annotations

import pytest

from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.apiserver.admission.priority import Priority
from tests.apiserver.admission.world import admitted, copy, create, forbidden, meta, pod, update, world


def priority_class(name: str, value: int, **more: object) -> PriorityClass:
    more.setdefault("preemption_policy", "PreemptLowerPriority")
    return PriorityClass(metadata=meta(name), value=value, **more)  # type: ignore[arg-type]


def test_a_pod_without_a_class_has_priority_zero() -> None:
    made = admitted(Priority(world()), create(pod()))
    assert (made.spec.priority_class_name, made.spec.priority) == ("", 0)
    assert made.spec.preemption_policy == "PreemptLowerPriority"


def test_a_class_gives_its_value_and_policy() -> None:
    env = world(priority_class("high", 1000, preemption_policy="Never"))
    made = admitted(Priority(env), create(pod(priority_class_name="high")))
    assert (made.spec.priority, made.spec.preemption_policy) == (1000, "Never")


def test_the_default_class_is_used_and_named() -> None:
    env = world(priority_class("b", 20, global_default=True), priority_class("a", 30, global_default=True))
    made = admitted(Priority(env), create(pod()))
    assert (made.spec.priority_class_name, made.spec.priority) == ("b", 20)


@pytest.mark.parametrize(
    ("name", "value"), [("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000)]
)
def test_the_classes_of_the_system_need_not_be_stored(name: str, value: int) -> None:
    assert admitted(Priority(world()), create(pod(priority_class_name=name))).spec.priority == value


def test_a_pod_cannot_choose_its_own_number_or_policy() -> None:
    plugin = Priority(world(priority_class("high", 1000)))
    assert forbidden(plugin, create(pod(priority_class_name="gone"))) == (
        "no PriorityClass with name gone was found"
    )
    assert forbidden(plugin, create(pod(priority_class_name="high", priority=7))) == (
        "the integer value of priority (7) must not be provided in pod spec; "
        "priority admission controller computed 1000 from the given PriorityClass name"
    )
    assert forbidden(plugin, create(pod(priority_class_name="high", preemption_policy="Never"))) == (
        "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
        "priority admission controller computed PreemptLowerPriority from the given PriorityClass name"
    )
    admitted(plugin, create(pod(priority_class_name="high", priority=1000)))


def test_an_update_that_leaves_the_number_out_keeps_it() -> None:
    old = pod(priority=5, preemption_policy="Never")
    new = copy(old)
    new.spec.priority = new.spec.preemption_policy = None
    made = admitted(Priority(world()), update(new, old))
    assert (made.spec.priority, made.spec.preemption_policy) == (5, "Never")


def test_there_is_one_default_class_at_most() -> None:
    first = priority_class("first", 1, global_default=True)
    plugin = Priority(world(first))
    second = priority_class("second", 2, global_default=True)
    why = "PriorityClass first is already marked as default. Only one default can exist"
    assert forbidden(plugin, create(second)) == why
    assert forbidden(plugin, update(second, priority_class("second", 2))) == why
    admitted(plugin, update(first, first))
