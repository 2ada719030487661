"""Rules of KEP-6122 about `assigned.cpuset` that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_VALUE: Final = "nodeward/kubelet/downward.py"
_PAYLOADS: Final = "nodeward/kubelet/volumes/payloads.py"
_PODS: Final = "nodeward/kubelet/pod_manager.py"
_WORKERS: Final = "nodeward/kubelet/pod_workers.py"
_VOLUMES: Final = "nodeward/kubelet/volumes/pod_volumes.py"
_API: Final = "nodeward/validation/pod/downward_api.py"

_KNOWS: Final = "return assigned_cpus if gates.knows(ASSIGNED_GATE) else None"

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "6122-kubelet-asks-the-gate",
        _VALUE,
        _KNOWS,
        "return assigned_cpus if gates.knows(ASSIGNED_GATE) and gates.enabled(ASSIGNED_GATE) else None",
        ("6122-53", "6122-55"),
    ),
    Mutant("6122-old-kubelet-knows-the-resource", _VALUE, _KNOWS, "return assigned_cpus", ("6122-69",)),
    Mutant(
        "6122-old-kubelet-writes-an-empty-file",
        _VALUE,
        _KNOWS,
        "return assigned_cpus if gates.knows(ASSIGNED_GATE) else no_cpus",
        ("6122-69",),
    ),
    Mutant(
        "6122-file-of-another-container",
        _VALUE,
        "return assigned_cpus(pod.metadata.uid, container.name)",
        "return assigned_cpus(pod.metadata.uid, pod.spec.containers[0].name)",
        ("6122-46",),
    ),
    Mutant(
        "6122-limit-instead-of-the-set",
        _VALUE,
        "    if assigned_cpus is not None and reference.resource == ASSIGNED_CPUSET:\n"
        "        return assigned_cpus(pod.metadata.uid, container.name)\n",
        "    if assigned_cpus is not None and reference.resource == ASSIGNED_CPUSET:\n"
        '        return str(container.resources.limits["cpu"].value)\n',
        ("6122-44", "6122-46"),
    ),
    Mutant(
        "6122-unlimited-resources-show-nothing",
        _VALUE,
        '    if side == "limits" and name in _DEFAULTED and not amount:\n',
        '    if side == "limits" and name in _OF_PODS and not amount:\n',
        ("6122-42",),
    ),
    Mutant(
        "6122-payloads-never-ask",
        _PAYLOADS,
        "sources.allocatable, assigned_cpus=sources.assigned_cpus",
        "sources.allocatable, assigned_cpus=None",
        ("6122-46", "6122-68"),
    ),
    Mutant(
        "6122-shared-cpus-are-shown-too",
        _PODS,
        'return managed.agent.container_manager.assigned_cpuset(uid, container) if managed is not None else ""',
        'return managed.agent.container_manager.cpuset(uid, container) if managed is not None else ""',
        ("6122-44",),
    ),
    Mutant(
        "6122-files-are-not-written-at-once",
        _WORKERS,
        "            await managed.agent.services.volumes.refresh_own_fields(self.current(managed))\n",
        "            pass\n",
        ("6122-47", "6122-60"),
    ),
    Mutant(
        "6122-a-failed-write-counts-as-written",
        _WORKERS,
        "            trouble = str(error) or repr(error)\n        written(trouble)\n",
        '            trouble = str(error) or repr(error)\n        written("")\n',
        ("6122-60",),
    ),
    Mutant(
        "6122-mounted-volumes-are-left-alone",
        _VOLUMES,
        "if (present := read_payload(target)) is not None:",
        "if (present := read_payload(target)) is None:",
        ("6122-47", "6122-60"),
    ),
    Mutant(
        "6122-any-server-takes-the-field",
        _API,
        "if ctx is not None and ctx.knows(ASSIGNED_GATE) else _RESOURCES",
        "if ctx is not None else _RESOURCES",
        ("6122-52",),
    ),
)
