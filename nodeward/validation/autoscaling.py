"""The scale subresource: how many replicas somebody asks for."""

from __future__ import annotations

from nodeward.api.autoscaling_v1 import Scale
from nodeward.base.fielderror import FieldError
from nodeward.base.fieldpath import ROOT
from nodeward.validation.checks import check_not_negative


def validate_scale(scale: Scale) -> list[FieldError]:
    """Metadata of a scale is not looked at: it is that of the workload."""
    return check_not_negative(scale.spec.replicas, ROOT.child("spec", "replicas"))
