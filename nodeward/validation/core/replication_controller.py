"""Replication controllers, the older siblings of replica sets.

Counts that Kubernetes checks by declaration are reported after all other faults.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import (
    ReplicationController,
    ReplicationControllerSpec,
)
from nodeward.api.meta import LabelSelector
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain
from nodeward.validation.apps.counts import validate_counts
from nodeward.validation.apps.workloads import (
    validate_chosen,
    validate_parts,
    validate_restarting,
    workload_warnings,
)
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.pod.pod import validate_pod_template_spec
from nodeward.validation.validator import Validator

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_TEMPLATE: Final = _SPEC.child("template")


def _template(
    spec: ReplicationControllerSpec, old: ReplicationControllerSpec | None, ctx: Context
) -> list[FieldError]:
    errors = [] if spec.selector else [required(_SPEC.child("selector"))]
    if spec.template is None:
        return [*errors, required(_TEMPLATE)]
    if spec.selector:
        errors += validate_chosen(LabelSelector(match_labels=spec.selector), spec.template, _TEMPLATE)
    before = old.template if old else None
    errors += validate_pod_template_spec(spec.template, _TEMPLATE, ctx, before)
    return errors + validate_restarting(spec.template, _TEMPLATE, "ReplicationController")


def _counts(spec: ReplicationControllerSpec) -> list[FieldError]:
    if spec.replicas is None:
        return [required(_SPEC.child("replicas")), *validate_counts(spec, _SPEC, "min_ready_seconds")]
    return validate_counts(spec, _SPEC, "replicas", "min_ready_seconds")


def _create(controller: ReplicationController, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(controller.metadata, dns_subdomain, namespaced=True)
    return errors + _template(controller.spec, None, ctx) + _counts(controller.spec)


def _update(new: ReplicationController, old: ReplicationController, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    return errors + _template(new.spec, old.spec, ctx) + _counts(new.spec)


def _status(new: ReplicationController, old: ReplicationController, ctx: Context) -> list[FieldError]:
    status = new.status
    parts = ("fully_labeled_replicas", "ready_replicas", "available_replicas")
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_counts(status, _STATUS, "replicas", *parts, "observed_generation")
    errors += validate_parts(status, status.replicas, _STATUS, *parts)
    if status.available_replicas > status.ready_replicas:
        at = _STATUS.child("availableReplicas")
        errors.append(invalid(at, status.available_replicas, "cannot be greater than readyReplicas"))
    return errors


def _warnings(new: ReplicationController, old: ReplicationController | None, ctx: Context) -> list[str]:
    if new.spec.template is None:
        return []
    return workload_warnings(new.metadata, old.metadata if old else None, new.spec.template, ctx)


REPLICATION_CONTROLLER: Final = Validator(
    create=_create, update=_update, status=_status, name=dns_subdomain, warnings=_warnings
)
