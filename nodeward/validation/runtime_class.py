"""Runtime classes: the handler they stand for, what it costs, and where it is found."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.references import Toleration
from nodeward.api.node_v1 import RuntimeClass, Scheduling
from nodeward.base.fielderror import FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import check_kept
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_requirements
from nodeward.validation.pod.tolerations import COMPARISON_GATE, Numbers, validate_tolerations
from nodeward.validation.validator import Validator


def _handler(handler: str) -> list[FieldError]:
    at = ROOT.child("handler")
    return [invalid(at, handler, fault) for fault in dns_label(handler)] if handler else [required(at)]


def _never() -> bool:
    return False


def _scheduling(scheduling: Scheduling, ctx: Context) -> list[FieldError]:
    path = ROOT.child("scheduling")
    errors = validate_labels(scheduling.node_selector, path.child("nodeSelector"))
    return errors + _tolerations(scheduling.tolerations, path.child("tolerations"), ctx)


def _tolerations(tolerations: list[Toleration], path: FieldPath, ctx: Context) -> list[FieldError]:
    # Runtime classes do not take numeric operators, whatever the gate says.
    made = Numbers.REFUSED if ctx.knows(COMPARISON_GATE) else Numbers.UNHEARD_OF
    errors = validate_tolerations(tolerations, path, lambda: made)
    seen: set[tuple[str, str, str, str]] = set()
    for i, toleration in enumerate(tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            errors.append(duplicate(path.index(i), toleration))
        seen.add(key)
    return errors


def _create(runtime: RuntimeClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(runtime.metadata, dns_subdomain, namespaced=False)
    if runtime.overhead is not None:
        requirements = ResourceRequirements(limits=runtime.overhead.pod_fixed)
        errors += validate_requirements(
            requirements, ROOT.child("overhead"), validate_container_resource_name, frozenset(), _never
        )
    if runtime.scheduling is not None:
        errors += _scheduling(runtime.scheduling, ctx)
    return errors + _handler(runtime.handler)


def _update(new: RuntimeClass, old: RuntimeClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata) + _create(new, ctx)
    return errors + check_kept(new.handler, old.handler, ROOT.child("handler"))


RUNTIME_CLASS: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)
