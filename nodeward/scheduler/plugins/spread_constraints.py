"""The spread constraints of a pod: its own, or those every pod of its profile has that something selects.

In goes a pod, out come constraints that must hold and constraints that only rank nodes. Default constraints are the
system's (at most 3 more per host, 5 more per zone, as a preference) or a list in the configuration; they have no
selector, so it is deduced: from the services that select the pod and from the controller that owns it. A pod that
nothing selects has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.apps_v1 import ReplicaSet, StatefulSet
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.affinity import TopologySpreadConstraint
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.core_v1.service import Service
from nodeward.api.meta import KubeObject
from nodeward.rules.selectors import LabelRequirements, Requirement, from_label_selector
from nodeward.scheduler.cache.pod_groups import Group
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.pod import PodView

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
#: The kinds a selector may be deduced from.
KINDS: Final = (Service, ReplicationController, ReplicaSet, StatefulSet)

MUST: Final = "DoNotSchedule"
_SYSTEM: Final = tuple(
    TopologySpreadConstraint(max_skew=skew, topology_key=key, when_unsatisfiable="ScheduleAnyway")
    for key, skew in ((HOSTNAME, 3), (ZONE, 5))
)
#: Signatures whose constraints are remembered; when there are more, all are forgotten.
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, its selector understood. Whoever is being deleted does not count."""

    max_skew: int
    topology_key: str
    selector: LabelRequirements | None
    group: Group
    #: with fewer domains than this, the emptiest is taken to have no pod
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    #: 1 if the pod itself is one of those that are spread
    own: int


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints of a pod. `needs_all_keys`: nodes that lack one of the labels are not ranked."""

    hard: tuple[Constraint, ...]
    soft: tuple[Constraint, ...]
    needs_all_keys: bool

    def __bool__(self) -> bool:
        return bool(self.hard or self.soft)


NONE: Final = Constraints((), (), True)


@dataclass(slots=True)
class _Known:
    """The constraints of pods of one signature, and what they were deduced from: do they still hold?"""

    services: int
    owner: KubeObject | None
    chosen: Mapping[str, str]
    constraints: Constraints


class SpreadConstraints:
    """The constraints of the pods of one profile."""

    def __init__(self, arguments: Mapping[str, Any], listers: Listers, *, merges_keys: bool) -> None:
        self._listers = listers
        self._merges_keys = merges_keys
        self._is_system = arguments.get("defaultingType", "System") == "System"
        given = [
            from_tree(each, TopologySpreadConstraint) for each in arguments.get("defaultConstraints", ())
        ]
        self._defaults: Sequence[TopologySpreadConstraint] = _SYSTEM if self._is_system else given
        self._services_version = -1
        self._services: dict[str, list[tuple[LabelRequirements, Mapping[str, str]]]] = {}
        self._known: dict[bytes, _Known] = {}

    def of(self, pod: PodView) -> Constraints:
        """The constraints that count for the pod. `SelectorError`: they cannot be understood."""
        if not pod.pod.spec.topology_spread_constraints and not self._defaults:
            return NONE
        known = self._known.get(pod.signature) if pod.signature is not None else None
        if pod.pod.spec.topology_spread_constraints:
            if known is None:
                own = self._sorted(pod.pod.spec.topology_spread_constraints, pod, None, needs_all_keys=True)
                known = self._keep(pod, _Known(0, None, {}, own))
            return known.constraints
        owner = self._owner(pod)
        services = self._listers.version(Service)
        if known is not None and known.services == services and known.owner is owner:
            return known.constraints
        if known is None or known.services != services:
            chosen = self._chosen_by_services(pod)
        else:
            chosen = known.chosen
        selector = _selector(chosen, owner)
        if selector.is_everything:
            found = NONE
        else:
            found = self._sorted(self._defaults, pod, selector, needs_all_keys=not self._is_system)
            if known is not None and found == known.constraints:
                # An owner whose status changed selects what it did.
                found = known.constraints
        return self._keep(pod, _Known(services, owner, chosen, found)).constraints

    def _keep(self, pod: PodView, known: _Known) -> _Known:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        if pod.signature is not None:
            self._known[pod.signature] = known
        return known

    def _sorted(
        self,
        given: Sequence[TopologySpreadConstraint],
        pod: PodView,
        selector: LabelRequirements | None,
        *,
        needs_all_keys: bool,
    ) -> Constraints:
        hard: list[Constraint] = []
        soft: list[Constraint] = []
        for each in given:
            kept = hard if each.when_unsatisfiable == MUST else soft
            kept.append(self._constraint(each, pod, selector))
        return Constraints(tuple(hard), tuple(soft), needs_all_keys)

    def _constraint(
        self, given: TopologySpreadConstraint, pod: PodView, deduced: LabelRequirements | None
    ) -> Constraint:
        selector = deduced
        if deduced is None:
            selector = from_label_selector(given.label_selector)
            # A selector of nothing stays that.
            if self._merges_keys and selector is not None:
                selector = _with_own_values(selector, given.match_label_keys, pod.labels)
        # An empty selector counts no pod, though the pod itself is one it selects: as in Kubernetes.
        counted = None if selector is None or selector.is_everything else selector
        return Constraint(
            given.max_skew,
            given.topology_key,
            selector,
            Group(((frozenset((pod.namespace,)), counted),), with_terminating=False),
            1 if given.min_domains is None else given.min_domains,
            given.node_affinity_policy != "Ignore",
            given.node_taints_policy == "Honor",
            int(selector is not None and selector.matches(pod.labels)),
        )

    def _chosen_by_services(self, pod: PodView) -> Mapping[str, str]:
        """The selectors of all services that select the pod, together."""
        version = self._listers.version(Service)
        if version != self._services_version:
            self._services = {}
            for service in self._listers.list(Service):
                if service.spec.selector:
                    here = self._services.setdefault(service.metadata.namespace, [])
                    here.append((_equal(service.spec.selector), service.spec.selector))
            self._services_version = version
        chosen: dict[str, str] = {}
        for selector, pairs in self._services.get(pod.namespace, ()):
            if selector.matches(pod.labels):
                chosen.update(pairs)
        return chosen

    def _owner(self, pod: PodView) -> KubeObject | None:
        """The controller that owns the pod, if it is of a kind that selects pods and known."""
        for reference in pod.pod.metadata.owner_references:
            if reference.controller:
                match reference.api_version, reference.kind:
                    case "v1", "ReplicationController":
                        return self._listers.get(ReplicationController, reference.name, pod.namespace)
                    case "apps/v1", "ReplicaSet":
                        return self._listers.get(ReplicaSet, reference.name, pod.namespace)
                    case "apps/v1", "StatefulSet":
                        return self._listers.get(StatefulSet, reference.name, pod.namespace)
                return None
        return None


def _selector(chosen: Mapping[str, str], owner: KubeObject | None) -> LabelRequirements:
    """What services and the owner select together."""
    if isinstance(owner, ReplicationController):
        return _equal({**chosen, **owner.spec.selector})
    found = _equal(chosen)
    if isinstance(owner, ReplicaSet | StatefulSet):
        other = from_label_selector(owner.spec.selector)
        if other is not None:
            return LabelRequirements((*found.requirements, *other.requirements))
    return found


def _equal(pairs: Mapping[str, str]) -> LabelRequirements:
    return LabelRequirements(tuple(Requirement(key, "=", (value,)) for key, value in sorted(pairs.items())))


def _with_own_values(
    selector: LabelRequirements, keys: Sequence[str], labels: Mapping[str, str]
) -> LabelRequirements:
    """The selector, narrowed to pods that have the same values of these labels as the pod itself."""
    own = {key: labels[key] for key in keys if key in labels}
    return LabelRequirements((*_equal(own).requirements, *selector.requirements)) if own else selector
