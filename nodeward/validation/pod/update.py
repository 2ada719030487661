"""Changes of pods: little of a pod may change once it exists.

Images, activeDeadlineSeconds (only shorter), tolerations (only more), scheduling gates (only fewer) and a few repairs;
while gates hold a pod back its node selector and affinity may become narrower. Resources change through `resize`,
ephemeral containers through their own subresource.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import Affinity, NodeAffinity
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import NodeSelectorTerm
from nodeward.base.fielderror import FieldError, forbidden, invalid, quote
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import in_range
from nodeward.validation.checks import check_present
from nodeward.validation.meta.metadata import METADATA, validate_metadata_update
from nodeward.validation.pod.annotations import (
    is_mirror,
    validate_annotation_changes,
    validate_pod_annotations,
)
from nodeward.validation.pod.container import validate_image_padding
from nodeward.validation.pod.extras import validate_only_deleted_gates
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.pod import SPEC, validate_pod_metadata_and_spec
from nodeward.validation.pod.tolerations import validate_only_added_tolerations
from nodeward.validation.spec_diff import spec_diff
from nodeward.validation.validator import distinct

_LARGEST_INT32: Final = 2**31 - 1
_ANNOTATIONS: Final = METADATA.child("annotations")
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod_update(new: Pod, old: Pod, ctx: Context) -> list[FieldError]:
    options = PodOptions(ctx, old.spec, old.metadata, is_pod=True)
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_pod_metadata_and_spec(new, options)
    errors += validate_annotations_update(new, old, options)
    for name, mine, theirs in (
        ("containers", new.spec.containers, old.spec.containers),
        ("initContainers", new.spec.init_containers, old.spec.init_containers),
    ):
        if len(mine) != len(theirs):
            detail = "pod updates may not add or remove containers"
            return distinct([*errors, forbidden(SPEC.child(name), detail)])
        errors += _images(mine, SPEC.child(name))
    if fault := _deadline(new.spec.active_deadline_seconds, old.spec.active_deadline_seconds):
        errors.append(fault)
        if new.spec.active_deadline_seconds is not None:
            return distinct(errors)
    errors += validate_only_added_tolerations(
        new.spec.tolerations, old.spec.tolerations, SPEC.child("tolerations"), options.comparison_operators
    )
    errors += validate_only_deleted_gates(
        new.spec.scheduling_gates, old.spec.scheduling_gates, SPEC.child("schedulingGates")
    )
    if new.spec != old.spec:
        errors += _frozen_fields(new.spec, old.spec)
    return distinct(errors)


def validate_annotations_update(new: Pod, old: Pod, options: PodOptions) -> list[FieldError]:
    errors = validate_annotation_changes(new.metadata.annotations, old.metadata.annotations, _ANNOTATIONS)
    return errors + validate_pod_annotations(new.metadata.annotations, new.spec, _ANNOTATIONS, options)


def validate_ephemeral_containers_update(new: Pod, old: Pod, ctx: Context) -> list[FieldError]:
    """The subresource `ephemeralcontainers`: they are only added."""
    if is_mirror(old.metadata):
        return [forbidden(ROOT, "static pods do not support ephemeral containers")]
    options = PodOptions(ctx, old.spec, old.metadata, is_pod=True)
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_pod_metadata_and_spec(new, options)
    errors += validate_annotations_update(new, old, options)
    path = SPEC.child("ephemeralContainers")
    kept = {container.name: container for container in new.spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        mine = kept.get(container.name)
        name = quote(container.name)
        if mine is None:
            errors.append(forbidden(path, f"existing ephemeral containers {name} may not be removed\n"))
        elif mine != container:
            diff = spec_diff(container, mine)
            errors.append(forbidden(path, f"existing ephemeral containers {name} may not be changed\n{diff}"))
    return distinct(errors)


def _images(containers: list[Container], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, container in enumerate(containers):
        errors += check_present(container.image, path.index(i).child("image"))
        errors += validate_image_padding(container, path.index(i))
    return errors


def _deadline(new: int | None, old: int | None) -> FieldError | None:
    path = SPEC.child("activeDeadlineSeconds")
    if new is None:
        if old is None:
            return None
        return invalid(path, None, "must not update from a positive integer to nil value")
    if not 0 <= new <= _LARGEST_INT32:
        return invalid(path, new, in_range(0, _LARGEST_INT32))
    if old is not None and old < new:
        return invalid(path, new, "must be less than or equal to previous value")
    return None


def _frozen_fields(new: PodSpec, old: PodSpec) -> list[FieldError]:
    """The new spec with all that may change set back must be the old spec."""
    rest = msgspec.structs.replace(
        new,
        containers=_with_images(new.containers, old.containers),
        init_containers=_with_images(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
    )
    grace = old.termination_grace_period_seconds
    if grace is not None and grace < 0 and rest.termination_grace_period_seconds == 1:
        rest.termination_grace_period_seconds = grace
    errors: list[FieldError] = []
    if old.scheduling_gates:
        errors += _narrower_placement(rest, old)
    if rest != old:
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n{spec_diff(old, rest)}"
        errors.append(forbidden(SPEC, detail))
    return errors


def _with_images(new: list[Container], old: list[Container]) -> list[Container]:
    return [
        msgspec.structs.replace(mine, image=theirs.image) if mine.image != theirs.image else mine
        for mine, theirs in zip(new, old, strict=True)
    ]


def _narrower_placement(rest: PodSpec, old: PodSpec) -> list[FieldError]:
    """Checks the two that may change while gates are there, and sets them back in `rest`."""
    errors: list[FieldError] = []
    if rest.node_selector != old.node_selector:
        if any(rest.node_selector.get(key) != value for key, value in old.node_selector.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid(SPEC.child("nodeSelector"), rest.node_selector, detail))
        rest.node_selector = old.node_selector
    mine = rest.affinity.node_affinity if rest.affinity is not None else None
    theirs = old.affinity.node_affinity if old.affinity is not None else None
    if mine != theirs:
        errors += _narrower_affinity(mine, theirs)
        rest.affinity = _with_node_affinity(rest.affinity, theirs, old.affinity is None)
    return errors


def _with_node_affinity(
    affinity: Affinity | None, node_affinity: NodeAffinity | None, old_had_none: bool
) -> Affinity | None:
    if affinity is None:
        return Affinity(node_affinity=node_affinity)
    if old_had_none and affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
        return None
    return msgspec.structs.replace(affinity, node_affinity=node_affinity)


def _narrower_affinity(new: NodeAffinity | None, old: NodeAffinity | None) -> list[FieldError]:
    selector = old.required_during_scheduling_ignored_during_execution if old is not None else None
    if selector is None or not selector.node_selector_terms:
        return []
    path = SPEC.child(
        "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    mine = new.required_during_scheduling_ignored_during_execution if new is not None else None
    terms = mine.node_selector_terms if mine is not None else []
    if len(terms) != len(selector.node_selector_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, terms or None, detail)]
    return [
        invalid(path.index(i), term, "only additions are allowed (no mutations or deletions)")
        for i, (term, was) in enumerate(zip(terms, selector.node_selector_terms, strict=True))
        if not _has_only_additions(term, was)
    ]


def _has_only_additions(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    if not old.match_expressions and not old.match_fields:
        # An empty term matches nothing; something in it would match more.
        return not new.match_expressions and not new.match_fields
    return (
        new.match_expressions[: len(old.match_expressions)] == old.match_expressions
        and new.match_fields[: len(old.match_fields)] == old.match_fields
    )
