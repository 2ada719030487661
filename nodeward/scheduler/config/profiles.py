"""The profiles of a configuration file: which plugins take part where, in which order, with which weight.

As in Kubernetes a file changes the default profile: what it enables is added (or, if it was there, reconfigured in its
place), what it disables is left out, `*` leaves all out. `multiPoint` speaks of every extension point, and what is said
of a single one goes before it.

# Unlike upstream: plugins have one order, that of the filters, at all extension points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeward.base.fielderror import duplicate, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.scheduler.config.arguments import READERS
from nodeward.scheduler.config.reading import LARGEST_INT32, ConfigFields, nearest
from nodeward.scheduler.framework.plugin import EXTENSION_POINTS, Plugin
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.settings import (
    DEFAULT_SCHEDULER_NAME,
    PluginUse,
    ProfileSettings,
    default_profile,
)

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"
#: Points of pod groups, at which nothing of ours takes part.
_EMPTY_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
#: Plugins of kube-scheduler that do not exist here: a file may disable what is not there.
_ELSEWHERE: Final = (
    "DeferredPodScheduling",
    "DefaultBinder",
    "DefaultPreemption",
    "GangScheduling",
    "InterPodAffinity",
    "NodeVolumeLimits",
    "PodGroupPodsCount",
    "PodTopologySpread",
    "TopologyPlacementGenerator",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
)


class Known:
    """The plugins there are with some gates, and where each can take part."""

    def __init__(self, gates: Gates) -> None:
        self.gates: Final = gates
        self.default: Final = default_profile(gates)
        #: plugins that exist only with a gate that is off
        self.off: Final = {
            each.name: each.gate for each in REGISTRY if each.gate and not gates.enabled(each.gate)
        }
        self.points: Final = {each.name: points_of(each) for each in REGISTRY if each.name not in self.off}

    def check(self, name: str, path: FieldPath, problems: Problems) -> bool:
        """Whether there is such a plugin; if not, that is noted."""
        if name in self.points:
            return True
        if name in self.off:
            detail = f"exists only with the feature gate {self.off[name]}=true"
            problems.add(invalid(path, name, detail))
        else:
            near = nearest(name, self.points)
            there = f"; there are: {', '.join(self.points)}" if "did you mean" in near else ""
            problems.add(invalid(path, name, f"no such plugin{near}{there}"))
        return False


def points_of(plugin: type[Plugin]) -> tuple[str, ...]:
    """The extension points a plugin takes part in, unless it is told not to."""
    return tuple(point for point, kind in EXTENSION_POINTS.items() if issubclass(plugin, kind))


@dataclass(frozen=True, slots=True)
class _Set:
    """What the file says about one extension point. A weight that is not said is 0."""

    enabled: tuple[PluginUse, ...] = ()
    disabled: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(use.name for use in self.enabled)


def read_profiles(file: ConfigFields, known: Known) -> tuple[ProfileSettings, ...]:
    """All profiles of the file; the default one if it has none."""
    found: list[ProfileSettings] = []
    sorts: list[_Set] = []
    fields = file.parts("profiles", ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
    problems = file.problems
    for number, profile in enumerate(fields):
        name = profile.text("schedulerName", DEFAULT_SCHEDULER_NAME if len(fields) == 1 else "")
        if not name:
            detail = "every profile needs a name of its own" if len(fields) > 1 else "must not be empty"
            problems.add(required(profile.at("schedulerName"), detail))
        elif name in (other.name for other in found):
            problems.add(duplicate(profile.at("schedulerName"), name))
        profile.whole("percentageOfNodesToScore", 0, low=0, high=100, must="not in valid range [0-100]")
        sets = _read_sets(profile, known)
        plugins, disabled = _merged(sets, known)
        arguments = _read_arguments(profile, known)
        _check_needed(plugins, disabled, profile, known)
        sorts.append(sets["queueSort"])
        if sorts[0] != sorts[number]:
            at = profile.at("plugins").child("queueSort")
            problems.add(invalid(at, list(sorts[number].names), "must be the same for all profiles"))
        found.append(ProfileSettings(name, plugins, disabled, arguments))
    return tuple(found) or (known.default,)


def _read_sets(profile: ConfigFields, known: Known) -> dict[str, _Set]:
    plugins = profile.part("plugins", (MULTI_POINT, *EXTENSION_POINTS, *_EMPTY_POINTS))
    sets = {point: _read_set(plugins, point, known) for point in (MULTI_POINT, *EXTENSION_POINTS)}
    for point in _EMPTY_POINTS:
        for path, _ in plugins.part(point, ("enabled", "disabled")).items("enabled"):
            profile.problems.say(path, "no plugin takes part at this extension point")
    return sets


def _read_set(plugins: ConfigFields, point: str, known: Known) -> _Set:
    fields = plugins.part(point, ("enabled", "disabled"))
    problems = fields.problems
    enabled: list[PluginUse] = []
    for each in fields.parts("enabled", ("name", "weight")):
        name = each.text("name")
        weight = each.whole("weight", 0, low=0, must=f"must be from 0 to {LARGEST_INT32}; 0 stands for 1")
        if not known.check(name, each.at("name"), problems):
            continue
        if point != MULTI_POINT and point not in known.points[name]:
            where = ", ".join((MULTI_POINT, *known.points[name]))
            problems.add(
                invalid(each.at("name"), name, f"takes no part in {point}; it can be enabled at: {where}")
            )
        if any(use.name == name for use in enabled):
            problems.add(duplicate(each.at("name"), name))
        enabled.append(PluginUse(name, weight))
    disabled: list[str] = []
    for each in fields.parts("disabled", ("name", "weight")):
        name = each.text("name")
        if name in (ALL, *_ELSEWHERE, *known.off) or known.check(name, each.at("name"), problems):
            disabled.append(name)
    return _Set(tuple(enabled), tuple(disabled))


def _merged(
    sets: Mapping[str, _Set], known: Known
) -> tuple[tuple[PluginUse, ...], dict[str, frozenset[str]]]:
    """All plugins that take part anywhere, and where they do not."""
    everywhere = _over_defaults(known.default.plugins, sets[MULTI_POINT])
    members = {
        point: [
            *sets[point].names,
            *(name for name in everywhere if not {ALL, name} & {*sets[point].disabled}),
        ]
        for point in EXTENSION_POINTS
    }
    first = [name for name in sets["filter"].names if name in everywhere]
    # Each name once, at the first of its places.
    order = dict.fromkeys([*first, *everywhere, *(name for names in members.values() for name in names)])
    explicit = {use.name: use.weight or 1 for use in sets["score"].enabled}
    uses: list[PluginUse] = []
    disabled: dict[str, frozenset[str]] = {}
    for name in order:
        points = known.points[name]
        absent = frozenset(point for point in EXTENSION_POINTS if name not in members[point])
        if absent.issuperset(points):
            continue
        weight = explicit.get(name) or everywhere.get(name) or 1
        uses.append(PluginUse(name, weight if "score" in points else 0))
        if absent:
            disabled[name] = absent
    return tuple(uses), disabled


def _over_defaults(default: Sequence[PluginUse], said: _Set) -> dict[str, int]:
    """The weights of the plugins enabled everywhere, in their order."""
    told = {use.name: use.weight for use in said.enabled}
    kept = {
        use.name: told.pop(use.name, use.weight)
        for use in default
        if ALL not in said.disabled and use.name not in said.disabled
    }
    return kept | told


def _check_needed(
    plugins: Sequence[PluginUse], disabled: Mapping[str, frozenset[str]], profile: ConfigFields, known: Known
) -> None:
    """A queue has one order, and somebody must bind."""
    for point in ("queueSort", "bind"):
        able = [name for name, points in known.points.items() if point in points]
        there = [
            use.name
            for use in plugins
            if use.name in able and point not in disabled.get(use.name, frozenset())
        ]
        at = profile.at("plugins").child(point)
        if able and not there:
            profile.problems.add(required(at, f"one plugin must be enabled, of: {', '.join(able)}"))
        elif point == "queueSort" and len(there) > 1:
            profile.problems.add(invalid(at, there, "only one queue sort plugin can be enabled"))


def _read_arguments(profile: ConfigFields, known: Known) -> dict[str, dict[str, Any]]:
    problems = profile.problems
    found: dict[str, dict[str, Any]] = {}
    for each in profile.parts("pluginConfig", ("name", "args")):
        name = each.text("name")
        if not known.check(name, each.at("name"), problems):
            continue
        if name in found:
            problems.add(duplicate(each.at("name"), name))
            continue
        fields, read = READERS.get(name, ((), None))
        if read is None and each.tree.get("args"):
            problems.say(each.at("args"), f"{name} takes no arguments")
            continue
        args = each.part("args", ("apiVersion", "kind", *fields))
        args.text("apiVersion", among=(API_VERSION,))
        args.text("kind", among=(f"{name}Args",))
        found[name] = read(args, known.gates) if read is not None else {}
    for name in known.points:
        if name not in found and name in READERS:
            fields, read = READERS[name]
            if read is not None:
                found[name] = read(
                    ConfigFields({}, profile.at("pluginConfig"), problems, fields), known.gates
                )
    return found
