"""How many pods where: rounding, proportions, and bounds that hold whatever the order of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodeward.api.apps_v1 import Deployment, DeploymentStrategy, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from nodeward.api.fields import IntOrString
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.deployment.arithmetic import (
    in_proportion,
    is_scaling,
    max_surge,
    max_unavailable,
    rolling_step,
)
from nodeward.controllers.deployment.revisions import DESIRED_REPLICAS, MAX_REPLICAS
from nodeward.machinery.clock import SeededChance
from nodeward.rules.int_or_percent import scaled
from tests.controllers.workloads import deployment


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        ("25%", 10, 3, 2),
        ("25%", 4, 1, 1),
        ("1%", 3, 1, 0),
        ("0%", 3, 0, 0),
        ("150%", 3, 5, 4),
        (7, 3, 7, 7),
        (None, 3, 0, 0),
    ],
)
def test_percentages_are_rounded_as_told(value: IntOrString | None, total: int, up: int, down: int) -> None:
    assert scaled(value, total, round_up=True) == up
    assert scaled(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "more", "fewer"),
    [
        (10, "25%", "25%", 3, 2),
        (1, "25%", "25%", 1, 0),
        (3, 0, "10%", 0, 1),
        (3, "0%", "10%", 0, 1),
        (0, "25%", "25%", 0, 0),
        (3, 1, 5, 1, 3),
    ],
)
def test_surge_is_rounded_up_unavailability_down_and_never_both_to_zero(
    replicas: int, surge: IntOrString, unavailable: IntOrString, more: int, fewer: int
) -> None:
    each = deployment(replicas=replicas, surge=surge, unavailable=unavailable)
    assert (max_surge(each), max_unavailable(each)) == (more, fewer)


def test_without_rolling_there_is_no_surge() -> None:
    each = deployment(strategy=DeploymentStrategy(type="Recreate"))
    assert (max_surge(each), max_unavailable(each)) == (0, 0)


def sized(
    name: str, replicas: int, *, available: int | None = None, before: tuple[int, int] = (10, 13)
) -> ReplicaSet:
    """Names sort by age; `before`: what the deployment asked for and allowed when this was sized."""
    desired, most = before
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name,
            annotations={DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)},
            creation_timestamp=f"2026-01-01T00:00:0{len(name)}Z",
        ),
        spec=ReplicaSetSpec(replicas=replicas),
        status=ReplicaSetStatus(
            replicas=replicas, available_replicas=replicas if available is None else available
        ),
    )


@pytest.mark.parametrize(
    ("wanted", "old", "new", "expected"),
    [
        (15, [8], 5, [11, 7]),
        (20, [8], 5, [14, 9]),
        (5, [8], 5, [5, 3]),
        (0, [8], 5, [0, 0]),
        (10, [8], 5, [8, 5]),
        (30, [5, 5], 3, [13, 13, 7]),
    ],
)
def test_scaling_mid_rollout_keeps_proportions(
    wanted: int, old: list[int], new: int, expected: list[int]
) -> None:
    names = [("a" * (number + 1)) for number in range(len(old))]
    olds = [sized(name, size) for name, size in zip(names, old, strict=True)]
    sizes = in_proportion(
        deployment(replicas=wanted, surge=3, unavailable=2), sized("z" * 9, new, available=0), olds
    )
    assert [sizes[name] for name in (*names, "z" * 9)] == expected


def test_scaling_is_noticed_by_what_replica_sets_remember() -> None:
    each = deployment(replicas=10)
    assert not is_scaling(each, [sized("a", 10)])
    assert is_scaling(each, [sized("a", 10, before=(9, 12))])
    assert not is_scaling(each, [sized("a", 0, before=(9, 12))])


@given(
    st.integers(0, 60),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(1, 30),
    st.integers(0, 5),
    st.integers(0, 5),
)
@example(wanted=1, old=[1, 1, 1], new=1, surge=1, slack=0)
def test_scaling_mid_rollout_gives_out_exactly_what_is_allowed(
    wanted: int, old: list[int], new: int, surge: int, slack: int
) -> None:
    most = sum(old) + new + slack
    olds = [sized("a" * (number + 1), size, before=(most - surge, most)) for number, size in enumerate(old)]
    newest = sized("z" * 9, new, available=0, before=(most - surge, most))
    sizes = in_proportion(deployment(replicas=wanted, surge=surge, unavailable=1), newest, olds)
    assert all(size >= 0 for size in sizes.values())
    assert sum(sizes.values()) == (wanted + surge if wanted else 0)


@dataclass
class Model:
    """A deployment, replica sets whose pods and statuses lag behind, and anything happening in any order."""

    deployment: Deployment
    sets: list[ReplicaSet] = field(default_factory=list)
    #: For each replica set, its pods: ready or not.
    pods: list[list[bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.add_set(self.deployment.spec.replicas or 0)
        self.pods[0] = [True] * (self.deployment.spec.replicas or 0)
        self.report(0)

    def add_set(self, size: int) -> None:
        name = "s" * (len(self.sets) + 1)
        self.sets.append(sized(name, size, available=0))
        self.sets[-1].metadata.generation = 1
        self.sets[-1].status = ReplicaSetStatus()
        self.pods.append([])

    def step(self) -> None:
        """The deployment controller looks."""
        sizes = rolling_step(self.deployment, self.sets[-1], self.sets[:-1])
        for each in self.sets:
            if each.metadata.name in sizes:
                each.spec.replicas = sizes[each.metadata.name]
                each.metadata.generation += 1

    def fill(self, number: int) -> None:
        """The replica set controller looks: pods that are not ready are deleted first."""
        wanted, pods = self.sets[number].spec.replicas or 0, sorted(self.pods[number])
        self.pods[number] = (
            pods[len(pods) - wanted :] if len(pods) > wanted else pods + [False] * (wanted - len(pods))
        )

    def report(self, number: int) -> None:
        """The replica set controller writes the status."""
        each, pods = self.sets[number], self.pods[number]
        each.status.observed_generation = each.metadata.generation
        each.status.replicas = len(pods)
        each.status.available_replicas = sum(pods)

    def start(self, number: int) -> None:
        """A pod becomes ready."""
        if False in self.pods[number]:
            self.pods[number][self.pods[number].index(False)] = True

    def check(self) -> None:
        wanted = self.deployment.spec.replicas or 0
        assert sum(map(len, self.pods)) <= wanted + max_surge(self.deployment)
        assert sum(map(sum, self.pods)) >= wanted - max_unavailable(self.deployment)


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32))
def test_no_order_of_events_breaks_the_bounds_and_every_rollout_ends(
    replicas: int, surge: int, unavailable: int, seed: int
) -> None:
    model = Model(deployment(replicas=replicas, surge=surge, unavailable=unavailable))
    model.add_set(0)
    chance = SeededChance(seed)
    for _ in range(200):
        number = chance.randrange(len(model.sets))
        what = chance.choice("dddffrrsss")
        if what == "d":
            model.step()
        elif what == "f":
            model.fill(number)
        elif what == "r":
            model.report(number)
        else:
            model.start(number)
        if len(model.sets) < 5 and not chance.randrange(40):
            model.add_set(0)
        model.check()
    for _ in range(4 * replicas + 8):
        for number in range(len(model.sets)):
            model.fill(number)
            for _ in range(replicas + surge):
                model.start(number)
            model.check()
            model.report(number)
        model.step()
        model.check()
    assert [each.spec.replicas for each in model.sets] == [0] * (len(model.sets) - 1) + [replicas]
