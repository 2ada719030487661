"""Who holds which CPUs: the shared set, the exclusive sets of containers, and what was promised to them at first.

One `CPUState` belongs to one node. The static policy changes it; the manager writes it to the checkpoint file after
each change and restores it from there.

What must stay true: a baseline is set when a container first gets exclusive CPUs and never changes until the container
is removed; without the feature gate there are no baselines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeward.base.cpuset import CPUSet


@dataclass(slots=True)
class CPUState:
    """The CPUs of one node by owner. `keeps_baselines`: feature gate InPlacePodVerticalScalingExclusiveCPUs is on."""

    #: The shared set: CPUs of all containers without exclusive ones.
    default: CPUSet = CPUSet.EMPTY
    #: Exclusive CPUs by pod UID and container name.
    entries: dict[str, dict[str, CPUSet]] = field(default_factory=dict)
    #: The exclusive CPUs a container was given first, by pod UID and container name.
    baselines: dict[str, dict[str, CPUSet]] = field(default_factory=dict)
    #: The CPUs of pods with resources of their own (feature gate PodLevelResourceManagers), by pod UID.
    pod_entries: dict[str, CPUSet] = field(default_factory=dict)
    keeps_baselines: bool = False

    def copy(self) -> CPUState:
        """Return the same state, which does not change with this one."""
        return CPUState(
            self.default,
            {uid: dict(each) for uid, each in self.entries.items()},
            {uid: dict(each) for uid, each in self.baselines.items()},
            dict(self.pod_entries),
            self.keeps_baselines,
        )

    def restore(self, before: CPUState) -> None:
        """Become what a copy was; the copy must not be used any more."""
        self.default, self.entries = before.default, before.entries
        self.baselines, self.pod_entries = before.baselines, before.pod_entries

    def assigned(self, uid: str, container: str) -> CPUSet | None:
        """Return the exclusive CPUs of a container; None if it runs on the shared set."""
        return self.entries.get(uid, {}).get(container)

    def assigned_or_default(self, uid: str, container: str) -> CPUSet:
        """Return the CPUs a container may run on."""
        assigned = self.assigned(uid, container)
        return self.default if assigned is None else assigned

    def assigned_in_pod(self, uid: str) -> CPUSet:
        """Return the exclusive CPUs of all containers of a pod."""
        return CPUSet.EMPTY.union(*self.entries.get(uid, {}).values())

    def all_assigned(self) -> CPUSet:
        """Return the exclusive CPUs of all containers."""
        return CPUSet.EMPTY.union(*(cpus for each in self.entries.values() for cpus in each.values()))

    def assign(self, uid: str, container: str, cpus: CPUSet) -> None:
        """Record the exclusive CPUs of a container."""
        self.entries.setdefault(uid, {})[container] = cpus
        if self.keeps_baselines:
            self.baselines.setdefault(uid, {}).setdefault(container, cpus)

    def remove(self, uid: str, container: str) -> None:
        """Forget a container; its CPUs are not added to the shared set."""
        for kept in (self.entries, self.baselines):
            kept.get(uid, {}).pop(container, None)
            if not kept.get(uid, True):
                del kept[uid]
