"""Pods and pod templates as a whole: when they are made.

`validate_pod` is for create, `validate_pod_template_spec` for every kind that carries a template. Changes of pods are
in `pod_update`, their status in `pod_status`, resizes in `pod_resize`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Binding, Pod, PodTemplate, PodTemplateSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.meta.metadata import (
    METADATA,
    validate_annotations,
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.pod.annotations import (
    validate_annotations_match_fields,
    validate_pod_annotations,
)
from nodeward.validation.pod.container import validate_image_padding
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.spec import validate_pod_spec
from nodeward.validation.validator import distinct

SPEC: Final = ROOT.child("spec")
_ANNOTATIONS: Final = METADATA.child("annotations")

#: The rule for a pod's name.
pod_name = dns_subdomain


def validate_pod(pod: Pod, ctx: Context) -> list[FieldError]:
    """A pod that is being made."""
    errors = validate_pod_metadata_and_spec(pod, PodOptions(ctx, is_pod=True))
    if pod.spec.ephemeral_containers:
        errors.append(forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden(SPEC.child("nodeName"), detail))
    return distinct(errors + validate_annotations_match_fields(pod.metadata, pod.spec, SPEC))


def validate_pod_metadata_and_spec(pod: Pod, options: PodOptions) -> list[FieldError]:
    """What holds for a pod at any time."""
    errors = validate_metadata(pod.metadata, pod_name, namespaced=True)
    spec = pod.spec
    errors += validate_pod_annotations(pod.metadata.annotations, spec, _ANNOTATIONS, options)
    errors += validate_pod_spec(spec, pod.metadata, SPEC, options)
    if spec.volumes and not spec.service_account_name:
        errors += _tokens_without_account(pod)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        at = SPEC.child("terminationGracePeriodSeconds")
        errors.append(invalid(at, grace, "must be greater than or equal to 0"))
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(containers):
            if container.image != container.image.strip():
                errors += validate_image_padding(container, SPEC.child(name).index(i))
    return errors


def _tokens_without_account(pod: Pod) -> list[FieldError]:
    detail = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(
            SPEC.child("volumes")
            .index(i)
            .child("projected", "sources")
            .index(j)
            .child("serviceAccountToken"),
            detail,
        )
        for i, volume in enumerate(pod.spec.volumes)
        if volume.projected is not None
        for j, source in enumerate(volume.projected.sources)
        if source.service_account_token is not None
    ]


def validate_pod_template_spec(
    template: PodTemplateSpec, path: FieldPath, ctx: Context, old: PodTemplateSpec | None = None
) -> list[FieldError]:
    """A template inside another kind, at `path`; `old` is what it was, when it is being changed."""
    options = PodOptions(
        ctx, old.spec if old is not None else None, old.metadata if old is not None else None
    )
    meta, spec = template.metadata, template.spec
    at = path.child("spec")
    errors = validate_labels(meta.labels, path.child("labels"))
    errors += validate_annotations(meta.annotations, path.child("annotations"))
    errors += validate_pod_annotations(meta.annotations, spec, path.child("annotations"), options)
    errors += validate_pod_spec(spec, None, at, options)
    errors += validate_annotations_match_fields(meta, spec, at)
    if spec.ephemeral_containers:
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(at.child("ephemeralContainers"), detail))
    return errors


def validate_pod_template(template: PodTemplate, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(template.metadata, pod_name, namespaced=True)
    return errors + validate_pod_template_spec(template.template, ROOT.child("template"), ctx)


def validate_pod_template_update(new: PodTemplate, old: PodTemplate, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    return errors + validate_pod_template_spec(new.template, ROOT.child("template"), ctx, old.template)


def validate_binding(binding: Binding) -> list[FieldError]:
    """The scheduler's word on which node a pod goes to."""
    target = ROOT.child("target")
    errors: list[FieldError] = []
    if binding.target.kind not in ("", "Node"):
        errors.append(not_supported(target.child("kind"), binding.target.kind, ("Node", "<empty>")))
    if not binding.target.name:
        errors.append(required(target.child("name")))
    elif binding.target.kind in ("", "Node"):
        name = binding.target.name
        errors += [invalid(target.child("name"), name, fault) for fault in dns_subdomain(name)]
    return errors
