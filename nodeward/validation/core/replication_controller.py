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
from nodeward.base.fielderror import FieldError, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain
from nodeward.validation.apps.counts import validate_counts
from nodeward.validation.apps.workloads import (
    validate_availability,
    validate_chosen,
    validate_parts,
    validate_restarting,
    workload_warnings,
)
from nodeward.validation.checks import given
from nodeward.validation.kinds import kind
from nodeward.validation.pod.pod import validate_pod_template_spec

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


def _controller(
    new: ReplicationController, old: ReplicationController | None, ctx: Context
) -> list[FieldError]:
    errors = _template(new.spec, old.spec if old else None, ctx)
    errors += given(new.spec.replicas, _SPEC.child("replicas"))
    return errors + validate_counts(new.spec, _SPEC, "replicas", "min_ready_seconds")


def _status(new: ReplicationController, old: ReplicationController, ctx: Context) -> list[FieldError]:
    status = new.status
    parts = ("fully_labeled_replicas", "ready_replicas", "available_replicas")
    errors = validate_counts(status, _STATUS, "replicas", *parts, "observed_generation")
    errors += validate_parts(status, status.replicas, _STATUS, *parts)
    return errors + validate_availability(status.ready_replicas, status.available_replicas, "readyReplicas")


def _warnings(new: ReplicationController, old: ReplicationController | None, ctx: Context) -> list[str]:
    if new.spec.template is None:
        return []
    return workload_warnings(new.metadata, old.metadata if old else None, new.spec.template, ctx)


REPLICATION_CONTROLLER: Final = kind(dns_subdomain, _controller, status=_status, warnings=_warnings)
