"""What workloads that run pods have in common: a template, a selector that must choose it, a restart policy.

In go the parts of a workload's spec with their paths, out come field errors in Kubernetes' order.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.fields import KubeStruct
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label
from nodeward.rules.selectors import selects
from nodeward.validation.meta.labels import is_empty, is_usable, validate_label_selector
from nodeward.validation.pod.pod import validate_pod_template_spec
from nodeward.validation.pod.warnings import pod_template_warnings

TEMPLATE: Final = ROOT.child("spec", "template")
_NOT_CHOSEN: Final = "`selector` does not match template `labels`"


def shown_labels(labels: dict[str, str]) -> dict[str, str] | None:
    """Labels as messages show them: in order, and null when there are none."""
    return dict(sorted(labels.items())) or None


def validate_selector(selector: LabelSelector | None, path: FieldPath, kind: str) -> list[FieldError]:
    """A selector that every workload of the kind must have, and that must not choose everything."""
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if is_empty(selector):
        errors.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return errors


def validate_chosen(
    selector: LabelSelector | None, template: PodTemplateSpec, path: FieldPath
) -> list[FieldError]:
    """The pods made from the template are pods the selector chooses. `path` is that of the template."""
    if selects(selector, template.metadata.labels):
        return []
    shown = shown_labels(template.metadata.labels)
    return [invalid(path.child("metadata", "labels"), shown, _NOT_CHOSEN)]


def validate_restarting(template: PodTemplateSpec, path: FieldPath, kind: str) -> list[FieldError]:
    """Pods that are meant to stay: always restarted, without a deadline. `path` is that of the template."""
    errors: list[FieldError] = []
    spec = path.child("spec")
    if template.spec.restart_policy != "Always":
        errors.append(not_supported(spec.child("restartPolicy"), template.spec.restart_policy, ("Always",)))
    if template.spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(spec.child("activeDeadlineSeconds"), detail))
    return errors


def validate_replica_template(
    template: PodTemplateSpec,
    old: PodTemplateSpec | None,
    selector: LabelSelector | None,
    path: FieldPath,
    ctx: Context,
) -> list[FieldError]:
    """The template of a Deployment or ReplicaSet, unless the selector cannot even be asked."""
    if not is_usable(selector):
        return []
    errors: list[FieldError] = []
    if selector is None or not is_empty(selector):
        errors += validate_chosen(selector, template, path)
    errors += validate_pod_template_spec(template, path, ctx, old)
    return errors + validate_restarting(template, path, "ReplicaSet")


def validate_selector_usable(
    selector: LabelSelector | None, path: FieldPath, detail: str
) -> list[FieldError]:
    return [] if is_usable(selector) else [invalid(path, selector, detail)]


def validate_availability(ready: int, available: int, of: str) -> list[FieldError]:
    """Who is available is ready. `of`: how the answer calls the ready ones."""
    if available <= ready:
        return []
    return [invalid(ROOT.child("status", "availableReplicas"), available, f"cannot be greater than {of}")]


def validate_parts(status: KubeStruct, total: int, path: FieldPath, *names: str) -> list[FieldError]:
    """No counter of a status is more than `total`, the number of replicas it is a part of."""
    detail = "cannot be greater than status.replicas"
    errors: list[FieldError] = []
    for name in names:
        value = getattr(status, name)
        if value > total:
            json_name = status.__struct_encode_fields__[status.__struct_fields__.index(name)]
            errors.append(invalid(path.child(json_name), value, detail))
    return errors


def workload_warnings(
    meta: ObjectMeta,
    old: ObjectMeta | None,
    template: PodTemplateSpec,
    ctx: Context,
    path: FieldPath = TEMPLATE,
    *,
    names_pods: bool = True,
) -> list[str]:
    """What to say about a new workload, or about one whose spec changed (its generation tells)."""
    if old is not None and old.generation == meta.generation:
        return []
    warnings = _name_warnings(meta) if old is None and names_pods else []
    return warnings + pod_template_warnings(template, path, ctx)


def _name_warnings(meta: ObjectMeta) -> list[str]:
    """A name that is fine for the workload may be a poor one for its pods."""
    faults = dns_label(meta.name)
    if not faults:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(faults)}]"
    ]
