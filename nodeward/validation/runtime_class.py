"""Runtime classes: the handler they stand for, what it costs, and where it is found."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.references import Toleration
from nodeward.api.node_v1 import RuntimeClass
from nodeward.base.fielderror import FieldError
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import Distinct, check_kept, check_name
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_requirements
from nodeward.validation.pod.tolerations import COMPARISON_GATE, Numbers, validate_tolerations


def _never() -> bool:
    return False


def _tolerations(tolerations: list[Toleration], path: FieldPath, ctx: Context) -> list[FieldError]:
    # Runtime classes do not take numeric operators, whatever the gate says.
    made = Numbers.REFUSED if ctx.knows(COMPARISON_GATE) else Numbers.UNHEARD_OF
    errors = validate_tolerations(tolerations, path, lambda: made)
    seen = Distinct()
    for i, toleration in enumerate(tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        errors += seen.add(key, path.index(i), toleration)
    return errors


def _rules(new: RuntimeClass, old: RuntimeClass | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.overhead is not None:
        requirements = ResourceRequirements(limits=new.overhead.pod_fixed)
        errors += validate_requirements(
            requirements, ROOT.child("overhead"), validate_container_resource_name, frozenset(), _never
        )
    if new.scheduling is not None:
        at = ROOT.child("scheduling")
        errors += validate_labels(new.scheduling.node_selector, at.child("nodeSelector"))
        errors += _tolerations(new.scheduling.tolerations, at.child("tolerations"), ctx)
    errors += check_name(new.handler, ROOT.child("handler"), dns_label)
    return errors if old is None else errors + check_kept(new.handler, old.handler, ROOT.child("handler"))


RUNTIME_CLASS: Final = kind(
    dns_subdomain,
    _rules,
    namespaced=False,
    update=(changed, made(dns_subdomain, namespaced=False), _rules),
)
