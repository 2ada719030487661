"""How evenly pods must lie over zones, racks, nodes: topology spread constraints."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.affinity import TopologySpreadConstraint
from nodeward.api.meta import LabelSelector
from nodeward.base.fielderror import FieldError, duplicate, forbidden, invalid
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.validation.checks import check_one_of, check_positive, check_present
from nodeward.validation.meta.labels import validate_label_name, validate_label_selector
from nodeward.validation.pod.affinity import validate_match_label_keys
from nodeward.validation.pod.options import PodOptions

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_NOT_POSITIVE: Final = "must be greater than zero"


def validate_spread(
    constraints: list[TopologySpreadConstraint], path: FieldPath, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    identities = [(constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints]
    last = {identity: i for i, identity in enumerate(identities)}
    is_merged = any(constraint.match_label_keys for constraint in constraints) and _is_merged(options)
    for i, constraint in enumerate(constraints):
        at = path.index(i)
        errors += _constraint(constraint, at, is_repeated=last[identities[i]] > i)
        keys, selector = constraint.match_label_keys, constraint.label_selector
        if is_merged:
            errors += validate_match_label_keys(keys, [], selector, at)
        else:
            errors += _unmerged(keys, selector, at.child("matchLabelKeys"))
        faults = validate_label_selector(selector, at.child("labelSelector"))
        if faults and not options.invalid_spread_selectors():
            errors += faults
    return errors


def _constraint(
    constraint: TopologySpreadConstraint, path: FieldPath, *, is_repeated: bool
) -> list[FieldError]:
    action = constraint.when_unsatisfiable
    errors = check_positive(constraint.max_skew, path.child("maxSkew"), _NOT_POSITIVE)
    errors += check_present(constraint.topology_key, path.child("topologyKey"), "can not be empty")
    errors += check_one_of(action, path.child("whenUnsatisfiable"), _ACTIONS)
    if is_repeated:
        at = path.child("{topologyKey, whenUnsatisfiable}")
        errors.append(duplicate(at, f"{{{constraint.topology_key}, {action}}}"))
    at = path.child("minDomains")
    errors += check_positive(constraint.min_domains, at, _NOT_POSITIVE)
    if constraint.min_domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(invalid(at, constraint.min_domains, detail))
    errors += check_one_of(constraint.node_affinity_policy, path.child("nodeAffinityPolicy"), _POLICIES)
    return errors + check_one_of(constraint.node_taints_policy, path.child("nodeTaintsPolicy"), _POLICIES)


def _is_merged(options: PodOptions) -> bool:
    """Since the keys are merged into the selector the rule changed; an old object keeps the one it was made by."""
    if not options.ctx.on("MatchLabelKeysInPodTopologySpread"):
        return False
    old = options.old.topology_spread_constraints if options.old is not None else []
    if options.ctx.on("MatchLabelKeysInPodTopologySpreadSelectorMerge"):
        return not any(validate_match_label_keys(c.match_label_keys, [], c.label_selector, ROOT) for c in old)
    return any(_unmerged(c.match_label_keys, c.label_selector, ROOT) for c in old)


def _unmerged(keys: list[str], selector: LabelSelector | None, path: FieldPath) -> list[FieldError]:
    if not keys:
        return []
    errors: list[FieldError] = []
    known: set[str] = set()
    if selector is None:
        errors.append(forbidden(path, "must not be specified when labelSelector is not set"))
    else:
        known = {*selector.match_labels, *(expression.key for expression in selector.match_expressions)}
    for i, key in enumerate(keys):
        errors += validate_label_name(key, path.index(i))
        if key in known:
            errors.append(invalid(path.index(i), key, "exists in both matchLabelKeys and labelSelector"))
    return errors
