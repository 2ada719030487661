"""What replica sets remember of the rollouts they were part of."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.controllers.deployment.revisions import (
    HASH_LABEL,
    REVISION,
    REVISION_HISTORY,
    annotations_of_new,
    forgettable,
    is_of,
    new_replica_set,
    next_revision,
    split,
)
from tests.controllers.workloads import deployment, template


def old(name: str, number: str, replicas: int = 0) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, annotations={REVISION: number}),
        spec=ReplicaSetSpec(replicas=replicas, template=template(f"web:{name}")),
        status=ReplicaSetStatus(replicas=replicas),
    )


def test_the_next_revision_is_one_more_than_any_and_nonsense_is_passed_over() -> None:
    assert next_revision([]) == 1
    assert next_revision([old("a", "7"), old("b", "3"), old("c", "many")]) == 8


def test_the_current_replica_set_is_known_by_its_template_whatever_its_hash() -> None:
    each = deployment()
    made = new_replica_set(each, OwnerReference(), 1, 4)
    assert HASH_LABEL in made.spec.template.metadata.labels
    assert is_of(made, each.spec.template)
    new, others = split(each, [old("a", "1"), made, old("b", "2")])
    assert new is made
    assert [other.metadata.name for other in others] == ["a", "b"]
    assert HASH_LABEL not in each.spec.template.metadata.labels


def test_of_two_with_the_same_template_the_older_is_current() -> None:
    each = deployment()
    older, younger = (new_replica_set(each, OwnerReference(), 1, 4) for _ in range(2))
    older.metadata.creation_timestamp, younger.metadata.creation_timestamp = (
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    )
    assert split(each, [younger, older]) == (older, [younger])


def test_annotations_are_handed_down_but_not_those_of_the_machinery() -> None:
    each = deployment()
    each.metadata.annotations = {
        "note": "yes",
        REVISION: "9",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    assert annotations_of_new(each, {}, 3) == {"note": "yes", REVISION: "3"}


@pytest.mark.parametrize(
    ("known", "number", "revision", "history"),
    [
        ({REVISION: "3"}, 2, "3", None),
        ({REVISION: "3"}, 3, "3", None),
        ({REVISION: "1"}, 3, "3", "1"),
        ({REVISION: "5", REVISION_HISTORY: "1,3"}, 8, "8", "1,3,5"),
        ({REVISION: "odd"}, 3, "odd", None),
    ],
)
def test_a_rollback_gets_a_new_number_and_keeps_the_old_ones(
    known: dict[str, str], number: int, revision: str, history: str | None
) -> None:
    found = annotations_of_new(deployment(), known, number)
    assert (found[REVISION], found.get(REVISION_HISTORY)) == (revision, history)


def test_a_history_that_grows_too_long_forgets_its_oldest() -> None:
    known = {REVISION: "1000", REVISION_HISTORY: ",".join(map(str, range(100, 600)))}
    history = annotations_of_new(deployment(), known, 1001)[REVISION_HISTORY]
    assert len(history) <= 2000
    assert history.endswith(",599,1000")


def test_only_empty_replica_sets_beyond_the_limit_are_forgotten_oldest_first() -> None:
    olds = [old("a", "4"), old("b", "1"), old("c", "2", replicas=1), old("d", "3")]
    gone = forgettable(deployment(revision_history_limit=1), olds)
    assert [each.metadata.name for each in gone] == ["b", "d"]
    assert forgettable(deployment(), olds) == []


def test_a_long_name_is_cut_so_that_the_hash_fits() -> None:
    made = new_replica_set(deployment("x" * 253), OwnerReference(), 1, 4)
    assert len(made.metadata.name) == 253
    assert made.metadata.name.endswith("-" + made.metadata.labels[HASH_LABEL])
