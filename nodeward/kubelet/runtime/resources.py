"""What a container may use, in the kernel's terms, and how that is said in a pod's spec and status.

`ContainerResources` goes to a runtime (`update_resources`) and comes back from it (`ResourcesApplied`, a found
container): what was asked for and what is in force are told apart. Pure; called by pod lives and by runtimes.

What must stay true: what a runtime does not control is None in its answers, and the status then shows what was
allocated; an amount that means the same as the allocated one is shown in the words of the spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.fielderror import quote
from nodeward.base.quantity import ZERO, Format, Quantity

PERIOD_US: Final = 100_000
_SHARES_PER_CPU: Final = 1024
_LEAST_SHARES: Final = 2
_MOST_SHARES: Final = 262144
_LEAST_QUOTA_US: Final = 1000


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """Resources of one container. None: in a command what stays as it is, in an answer what is not controlled."""

    #: the weight of its CPU request
    cpu_shares: int | None = None
    #: microseconds of CPU in every `PERIOD_US`; 0: no limit
    cpu_quota_us: int | None = None
    #: 0: no limit
    memory_bytes: int | None = None
    #: CPUs it may run on, as a list like "0-3,8"; "": all that are shared
    cpuset: str | None = None

    def with_changes(self, changes: ContainerResources) -> ContainerResources:
        """These resources after a command was carried out."""
        return ContainerResources(
            self.cpu_shares if changes.cpu_shares is None else changes.cpu_shares,
            self.cpu_quota_us if changes.cpu_quota_us is None else changes.cpu_quota_us,
            self.memory_bytes if changes.memory_bytes is None else changes.memory_bytes,
            self.cpuset if changes.cpuset is None else changes.cpuset,
        )


def cpu_shares(milli: int) -> int:
    """The weight of a CPU request."""
    return min(max(milli * _SHARES_PER_CPU // 1000, _LEAST_SHARES), _MOST_SHARES)


def cpu_quota_us(milli: int) -> int:
    """Microseconds of every 100 ms that a CPU limit allows; 0: as much as there is."""
    return max(milli * PERIOD_US // 1000, _LEAST_QUOTA_US) if milli else 0


#: What a container without requests and limits gets.
UNLIMITED: Final = ContainerResources(cpu_shares(0), 0, 0, "")


def kernel_resources(
    requirements: ResourceRequirements, cpuset: str | None = "", *, has_quota: bool = True
) -> ContainerResources:
    """Requests and limits in the kernel's terms. `has_quota`: False for a container whose CPUs are its own."""
    requests, limits = requirements.requests, requirements.limits
    if not requests and not limits and cpuset == "":
        return UNLIMITED
    cpu_limit = limits.get("cpu", ZERO).milli_value
    cpu_request = requests["cpu"].milli_value if "cpu" in requests else cpu_limit
    return ContainerResources(
        cpu_shares(cpu_request),
        cpu_quota_us(cpu_limit) if has_quota else None,
        limits.get("memory", ZERO).value,
        cpuset,
    )


def memory_refusal(container: str, wanted: ContainerResources, usage_bytes: int) -> str:
    """Return why a container that uses this much memory cannot have its new limit; "" if it can."""
    limit = wanted.memory_bytes
    if not limit or usage_bytes < limit:
        return ""
    return (
        f"cannot decrease memory limits: attempting to set container {quote(container)} memory limit ({limit}) "
        f"below current usage ({usage_bytes})"
    )


def plain_cpuset(text: str) -> str:
    """A list of CPUs in its shortest form. Raises `CPUSetError`."""
    return str(CPUSet.parse(text)) if text else ""


def usable_cpuset(text: str, present: CPUSet) -> str:
    """A list of CPUs in its shortest form. Raises `CPUSetError` if the machine, which has `present`, lacks one."""
    wanted = CPUSet.parse(text)
    if missing := wanted - present:
        raise CPUSetError(f"the machine has CPUs {present}, not {missing}")
    return str(wanted)


def shown_resources(
    allocated: ResourceRequirements, in_force: ContainerResources | None
) -> ResourceRequirements:
    """What a status shows: the allocated resources, with the amounts that are really in force."""
    if in_force is None:
        return allocated
    wanted = kernel_resources(allocated, None)
    requests, limits = allocated.requests, allocated.limits
    if _differs(wanted.cpu_shares, in_force.cpu_shares):
        requests = _set(requests, "cpu", Quantity.of_milli(_milli_of_shares(in_force.cpu_shares or 0)))
    # As upstream: without a quota (a container with CPUs of its own has none) the allocated limit is shown.
    if in_force.cpu_quota_us and _differs(wanted.cpu_quota_us, in_force.cpu_quota_us):
        limits = _set(limits, "cpu", Quantity.of_milli((in_force.cpu_quota_us or 0) * 1000 // PERIOD_US))
    if _differs(wanted.memory_bytes, in_force.memory_bytes):
        limits = _set(limits, "memory", Quantity.of_int(in_force.memory_bytes or 0, Format.BINARY_SI))
    if requests is allocated.requests and limits is allocated.limits:
        return allocated
    return ResourceRequirements(requests=requests, limits=limits, claims=allocated.claims)


def _differs(wanted: int | None, found: int | None) -> bool:
    return found is not None and found != wanted


def _set(amounts: dict[str, Quantity], name: str, amount: Quantity) -> dict[str, Quantity]:
    """The amounts with one of them changed; an amount of nothing is left out."""
    kept = {key: value for key, value in amounts.items() if key != name}
    return {**kept, name: amount} if amount else kept


def _milli_of_shares(shares: int) -> int:
    """The smallest CPU request with this weight. The least weight is what no request gets."""
    return 0 if shares <= _LEAST_SHARES else -(-shares * 1000 // _SHARES_PER_CPU)
