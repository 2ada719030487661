"""Rules of KEP-6122 about status and events of a resize that are broken on purpose; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_LIFE: Final = "nodeward/kubelet/pods/lifecycle.py"
_RESIZING: Final = "nodeward/kubelet/pods/resizing.py"
_MANAGER: Final = "nodeward/kubelet/resize_manager.py"
_WORKERS: Final = "nodeward/kubelet/pod_workers.py"
_ALLOCATION: Final = "nodeward/kubelet/allocation.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "6122-complete-before-it-is-applied",
        _LIFE,
        "        elif is_applied:\n",
        "        else:\n",
        ("6122-34", "6122-35"),
    ),
    Mutant(
        "6122-completed-again-and-again",
        _RESIZING,
        "    resize.in_progress = None\n    resize.before.clear()\n",
        "    resize.before.clear()\n",
        ("6122-34", "6122-35"),
    ),
    Mutant(
        "6122-held-cpus-are-not-shown",
        _RESIZING,
        "    if before is not None and life.name in resize.held:\n",
        "    if before is not None and life.name not in resize.before:\n",
        ("6122-38",),
    ),
    Mutant(
        "6122-second-resize-forgets-what-was-shown",
        _RESIZING,
        "            if name not in resize.held:\n",
        "            if name in resize.held:\n",
        ("6122-38",),
    ),
    Mutant(
        "6122-restart-forgets-what-was-shown",
        _RESIZING,
        "    resize.before = {each.name: each.resources for each in statuses if each.resources is not None}\n",
        "    resize.before = {each.name: life for each in statuses if (life := each.resources) is None}\n",
        ("6122-38",),
    ),
    Mutant(
        "6122-weight-waits-for-the-set",
        _RESIZING,
        "    return ContainerResources(cpu_shares=kernel.cpu_shares, cpu_quota_us=kernel.cpu_quota_us)\n",
        "    return ContainerResources(cpu_quota_us=kernel.cpu_quota_us)\n",
        ("6122-37",),
    ),
    Mutant(
        "6122-quota-on-exclusive-cpus",
        _WORKERS,
        "                if managed.agent.container_manager.has_exclusive_cpus(uid, name):\n",
        "                if not managed.agent.container_manager.has_exclusive_cpus(uid, name):\n",
        ("6122-37",),
    ),
    Mutant(
        "6122-accepted-is-not-allocated",
        _ALLOCATION,
        "            allocated = pod\n        finally:\n",
        "        finally:\n",
        ("6122-40",),
    ),
    Mutant(
        "6122-scheduler-sees-only-what-is-allocated",
        "nodeward/rules/pod_resources.py",
        "        raise_to(held, _aggregate(spec, actuated, missing))\n",
        "",
        ("6122-39",),
    ),
    Mutant(
        "6122-nobody-tries-again-when-cpus-are-free",
        _MANAGER,
        "            if resize.is_shrinking:\n",
        "            if not resize.is_shrinking:\n",
        ("6122-E2", "6122-39"),
    ),
)
