"""The arguments of plugins, one function each: checked as Kubernetes checks them, with its defaults filled in.

In go the fields of one `args`, out come plain values as the plugin reads them. Every function notes what is wrong and
gives something usable all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from nodeward.api.codec import from_tree, stray_fields, to_tree
from nodeward.api.core_v1.affinity import NodeAffinity, TopologySpreadConstraint
from nodeward.api.schema import schema_of
from nodeward.base.fielderror import duplicate, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.scheduler.config.reading import LARGEST_INT64, ConfigFields
from nodeward.validation.meta.labels import validate_label_name
from nodeward.validation.pod.affinity import validate_node_selector, validate_node_selector_term

S = TypeVar("S", bound=msgspec.Struct)

Arguments = dict[str, Any]

STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_RATIO: Final = STRATEGIES[2]
_DEFAULTING: Final = ("System", "List")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_DEFAULT_RESOURCES: Final = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})
#: Emptier storage is better, unless a shape says otherwise.
_DEFAULT_SHAPE: Final = ({"utilization": 0, "score": 10}, {"utilization": 100, "score": 0})
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _fit(args: ConfigFields, gates: Gates) -> Arguments:
    problems = args.problems
    ignored = args.texts("ignoredResources")
    groups = args.texts("ignoredResourceGroups")
    for path, name in ignored:
        for error in validate_label_name(name, path):
            problems.add(error)
    for path, name in groups:
        if "/" in name:
            problems.add(invalid(path, name, "resource group name can't contain '/'"))
        for error in validate_label_name(name, path):
            problems.add(error)
    strategy = args.part("scoringStrategy", ("type", "resources", "requestedToCapacityRatio"))
    if args.has("scoringStrategy") and not strategy.text("type"):
        problems.add(not_supported(strategy.at("type"), "", STRATEGIES))
    kind = strategy.text("type", STRATEGIES[0], among=STRATEGIES) or STRATEGIES[0]
    scoring: Arguments = {"type": kind, "resources": _resources(strategy, most=100)}
    ratio = strategy.part(_lower(_RATIO), ("shape",))
    if kind == _RATIO:
        if not strategy.has(_lower(_RATIO)):
            problems.add(required(ratio.path, f"must be specified when type is {_RATIO}"))
        scoring[_lower(_RATIO)] = {"shape": _shape(ratio) if strategy.has(_lower(_RATIO)) else []}
    elif strategy.has(_lower(_RATIO)):
        problems.add(forbidden(ratio.path, f"must be nil when type is not {_RATIO}"))
    return {
        "ignoredResources": [name for _, name in ignored],
        "ignoredResourceGroups": [name for _, name in groups],
        "scoringStrategy": scoring,
    }


def _balanced(args: ConfigFields, gates: Gates) -> Arguments:
    found = _resources(args, most=1)
    names = [each["name"] for each in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            args.problems.add(duplicate(args.at("resources").index(number).child("name"), name))
    return {"resources": found}


def _resources(fields: ConfigFields, *, most: int) -> list[Arguments]:
    found: list[Arguments] = []
    for each in fields.parts("resources", ("name", "weight")):
        name = each.text("name")
        if not name:
            each.problems.add(required(each.at("name"), "the name of a resource, for example cpu"))
        must = "must be 1" if most == 1 else f"resource weight of {name} not in valid range (0, {most}]"
        found.append(
            {"name": name, "weight": each.whole("weight", 1, low=1, high=most, must=must, zero_is=1)}
        )
    return found or [dict(each) for each in _DEFAULT_RESOURCES]


def _shape(fields: ConfigFields) -> list[Arguments]:
    at = fields.at("shape")
    points = fields.parts("shape", ("utilization", "score"))
    if not points:
        fields.problems.add(required(at, "at least one point must be specified"))
    shape: list[Arguments] = []
    for number, point in enumerate(points):
        utilization = point.whole("utilization", 0, low=0, high=100, must="not in valid range [0, 100]")
        score = point.whole("score", 0, low=0, high=10, must="not in valid range [0, 10]")
        if shape and shape[-1]["utilization"] >= utilization:
            where = at.index(number).child("utilization")
            fields.problems.add(invalid(where, utilization, "values must be sorted in increasing order"))
        shape.append({"utilization": utilization, "score": score})
    return shape


def _node_affinity(args: ConfigFields, gates: Gates) -> Arguments:
    if not args.has("addedAffinity"):
        return {}
    path = args.at("addedAffinity")
    added = _struct(args.tree["addedAffinity"], NodeAffinity, path, args.problems)
    if added is None:
        return {}
    errors = []
    if added.required_during_scheduling_ignored_during_execution is not None:
        errors += validate_node_selector(
            added.required_during_scheduling_ignored_during_execution, path.child(_REQUIRED)
        )
    for number, term in enumerate(added.preferred_during_scheduling_ignored_during_execution):
        at = path.child(_PREFERRED).index(number)
        if not 1 <= term.weight <= 100:
            errors.append(invalid(at.child("weight"), term.weight, "must be in the range 1-100"))
        errors += validate_node_selector_term(term.preference, at.child("preference"))
    for error in errors:
        args.problems.add(error)
    return {"addedAffinity": to_tree(added)}


def _inter_pod_affinity(args: ConfigFields, gates: Gates) -> Arguments:
    must = "not in valid range [0, 100]"
    return {
        "hardPodAffinityWeight": args.whole("hardPodAffinityWeight", 1, low=0, high=100, must=must),
        "ignorePreferredTermsOfExistingPods": args.truth("ignorePreferredTermsOfExistingPods"),
    }


def _spread(args: ConfigFields, gates: Gates) -> Arguments:
    problems = args.problems
    defaulting = args.text("defaultingType", _DEFAULTING[0], among=_DEFAULTING) or _DEFAULTING[0]
    constraints: list[Arguments] = []
    seen: list[tuple[str, str]] = []
    for path, each in args.items("defaultConstraints"):
        constraint = _struct(each, TopologySpreadConstraint, path, problems)
        if constraint is None:
            continue
        if constraint.max_skew <= 0:
            problems.add(invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
        if not constraint.topology_key:
            problems.add(required(path.child("topologyKey"), "can not be empty"))
        else:
            for error in validate_label_name(constraint.topology_key, path.child("topologyKey")):
                problems.add(error)
        action = constraint.when_unsatisfiable
        if not action:
            problems.add(required(path.child("whenUnsatisfiable"), f"one of {', '.join(_ACTIONS)}"))
        elif action not in _ACTIONS:
            problems.add(not_supported(path.child("whenUnsatisfiable"), action, _ACTIONS))
        if constraint.label_selector is not None:
            detail = "constraint must not define a selector, as they deduced for each pod"
            problems.add(forbidden(path.child("labelSelector"), detail))
        if (constraint.topology_key, action) in seen:
            problems.add(duplicate(path, f"{{{constraint.topology_key}, {action}}}"))
        seen.append((constraint.topology_key, action))
        constraints.append(to_tree(constraint))
    if constraints and defaulting == _DEFAULTING[0]:
        args.wrong("defaultingType", defaulting, "when .defaultConstraints are not empty: want List")
    return {"defaultConstraints": constraints, "defaultingType": defaulting}


def _volume_binding(args: ConfigFields, gates: Gates) -> Arguments:
    must = "must not be negative"
    timeout = args.whole("bindTimeoutSeconds", 600, low=0, high=LARGEST_INT64, must=must)
    found: Arguments = {"bindTimeoutSeconds": timeout}
    if gates.enabled("StorageCapacityScoring"):
        found["shape"] = _shape(args) if args.tree.get("shape") else [dict(each) for each in _DEFAULT_SHAPE]
    elif args.has("shape"):
        detail = "remove it or turn on the feature gate StorageCapacityScoring"
        args.wrong("shape", args.tree["shape"], detail)
    return found


def _dynamic_resources(args: ConfigFields, gates: Gates) -> Arguments:
    has_conditions = gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )
    conditions_off = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
    found: Arguments = {}
    for name, default, is_on, off, least, must in (
        (
            "filterTimeout",
            10.0,
            gates.enabled("DRASchedulerFilterTimeout"),
            "DRASchedulingFilterTimeout feature gate is disabled",
            0.0,
            "must be zero or positive",
        ),
        ("bindingTimeout", 600.0, has_conditions, conditions_off, 1.0, "must be at least 1 second"),
    ):
        if not args.has(name):
            if is_on:
                found[name] = default
        elif not is_on:
            args.problems.add(forbidden(args.at(name), off))
        else:
            found[name] = args.seconds(name, 0.0)
            if found[name] < least:
                args.wrong(name, args.tree[name], must)
    return found


def _preemption(args: ConfigFields, gates: Gates) -> Arguments:
    percent, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    found = {
        percent: args.whole(percent, 10, low=0, high=100, must="not in valid range [0, 100]"),
        absolute: args.whole(absolute, 100, low=0, must="not in valid range [0, inf)"),
    }
    if not any(found.values()):
        args.wrong(percent, 0, f"cannot be zero at the same time as {absolute}")
    return found


Reader = Callable[[ConfigFields, Gates], Arguments]

#: Plugins that take arguments: the names of their fields, and who reads them.
READERS: Final[Mapping[str, tuple[Sequence[str], Reader]]] = {
    "NodeResourcesFit": (("ignoredResources", "ignoredResourceGroups", "scoringStrategy"), _fit),
    "NodeResourcesBalancedAllocation": (("resources",), _balanced),
    "NodeAffinity": (("addedAffinity",), _node_affinity),
    "InterPodAffinity": (
        ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"),
        _inter_pod_affinity,
    ),
    "PodTopologySpread": (("defaultConstraints", "defaultingType"), _spread),
    "VolumeBinding": (("bindTimeoutSeconds", "shape"), _volume_binding),
    "DynamicResources": (("filterTimeout", "bindingTimeout"), _dynamic_resources),
    "DefaultPreemption": (("minCandidateNodesPercentage", "minCandidateNodesAbsolute"), _preemption),
}


def _struct(tree: Any, type_: type[S], path: FieldPath, problems: Problems) -> S | None:
    """A part of the file that is a part of the Kubernetes API."""
    count = len(problems)
    for stray in stray_fields(tree, schema_of(type_)) if isinstance(tree, dict) else ():
        problems.say(path.child(stray), "unknown field")
    try:
        found = from_tree(tree, type_)
    except (msgspec.MsgspecError, TypeError) as error:
        what, _, where = str(error).partition(" - at `$")
        inner = where.strip(".`")
        problems.say(path.child(inner) if inner else path, what.replace("`", ""))
        return None
    return found if len(problems) == count else None


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]
