"""Which replica set of a deployment is the current one, and what each remembers of the rollouts it was part of. Pure.

A rollout has a number. The replica set of the current template has the highest; one that becomes current again (a
rollback) gets a new number and keeps the old ones in a history. `kubectl rollout history` and `undo` read this.

What must stay true: nothing here changes the objects it is given.

Called by `arithmetic` and `controller`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from nodeward.api.apps_v1 import Deployment, ReplicaSet, ReplicaSetSpec
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.meta import LabelSelector, ObjectMeta, OwnerReference
from nodeward.controllers.pods.template_hash import template_hash

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
HASH_LABEL: Final = "pod-template-hash"

#: What a replica set does not inherit.
_OWN_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)
_MAX_HISTORY_CHARACTERS: Final = 2000
_MAX_NAME: Final = 253
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def revision(obj: ReplicaSet | Deployment) -> int | None:
    """Return the revision number; 0 if there is no annotation, None if it is not a number."""
    text = obj.metadata.annotations.get(REVISION)
    if text is None:
        return 0
    return int(text) if _NUMBER.fullmatch(text) else None


def whole_number(each: ReplicaSet, annotation: str) -> int | None:
    """Return a size that a replica set remembers, if it is one."""
    text = each.metadata.annotations.get(annotation, "")
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        return None
    number = int(text)
    return number if number < 2**31 else None


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Sort replica sets, oldest first."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))


def split(deployment: Deployment, sets: Iterable[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """Return the replica set of the current template (the oldest of several), and all others, oldest first."""
    aged = by_age(sets)
    new = next((each for each in aged if is_of(each, deployment.spec.template)), None)
    return new, [each for each in aged if each is not new]


def is_of(each: ReplicaSet, template: PodTemplateSpec) -> bool:
    """Tell whether a replica set makes pods of this template, but for the hash it adds."""
    return _without_hash(each.spec.template) == _without_hash(template)


def _without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    if HASH_LABEL not in template.metadata.labels:
        return template
    labels = {key: value for key, value in template.metadata.labels.items() if key != HASH_LABEL}
    return msgspec.structs.replace(
        template, metadata=msgspec.structs.replace(template.metadata, labels=labels)
    )


def next_revision(old: Iterable[ReplicaSet]) -> int:
    return max((revision(each) or 0 for each in old), default=0) + 1


def annotations_of_new(deployment: Deployment, known: Mapping[str, str], number: int) -> dict[str, str]:
    """Return what the current replica set's annotations should be, given what they are."""
    inherited = sorted(deployment.metadata.annotations.items())
    annotations = {**known, **{key: value for key, value in inherited if key not in _OWN_ANNOTATIONS}}
    before = known.get(REVISION, "")
    if before and not _NUMBER.fullmatch(before):
        return annotations
    if int(before or "0") < number:
        annotations[REVISION] = str(number)
        if before:
            annotations[REVISION_HISTORY] = _remembering(known.get(REVISION_HISTORY, ""), before)
    return annotations


def _remembering(history: str, number: str) -> str:
    """Return the history with one more; the oldest are forgotten when it grows too long."""
    numbers = [*history.split(","), number] if history else [number]
    while len(",".join(numbers)) > _MAX_HISTORY_CHARACTERS:
        del numbers[0]
    return ",".join(numbers)


def sizes_remembered(annotations: Mapping[str, str], desired: int, most: int) -> dict[str, str]:
    """Annotate with the size and maximum the deployment had when the replica set was sized."""
    return {**annotations, DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)}


def new_replica_set(deployment: Deployment, reference: OwnerReference, number: int, most: int) -> ReplicaSet:
    """Return a replica set of size zero for the current template; `most`: the deployment's maximum of pods."""
    template = deployment.spec.template
    hash_ = template_hash(template, deployment.status.collision_count)
    labels = {**template.metadata.labels, HASH_LABEL: hash_}
    selector = deployment.spec.selector or LabelSelector()
    annotations = annotations_of_new(deployment, {}, number)
    prefix = deployment.metadata.name[: _MAX_NAME - len(hash_) - 1]
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{prefix}-{hash_}",
            namespace=deployment.metadata.namespace,
            labels=labels,
            annotations=sizes_remembered(annotations, deployment.spec.replicas or 0, most),
            owner_references=[reference],
        ),
        spec=ReplicaSetSpec(
            replicas=0,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=LabelSelector(
                match_labels={**selector.match_labels, HASH_LABEL: hash_},
                match_expressions=selector.match_expressions,
            ),
            template=msgspec.structs.replace(
                template, metadata=msgspec.structs.replace(template.metadata, labels=dict(labels))
            ),
        ),
    )


def forgettable(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return old replica sets beyond `revisionHistoryLimit` that have no pods any more."""
    limit = deployment.spec.revision_history_limit
    if limit is None:
        return []
    staying = [each for each in old if each.metadata.deletion_timestamp is None]
    excess = max(0, len(staying) - limit)
    oldest_first = sorted(by_age(staying), key=lambda each: revision(each) or 0)
    return [each for each in oldest_first[:excess] if _is_empty(each)]


def _is_empty(each: ReplicaSet) -> bool:
    return (
        not each.spec.replicas
        and not each.status.replicas
        and each.metadata.generation <= each.status.observed_generation
    )
