"""What a node keeps back from its pods: reserved for the system and the kubelet, and below the eviction thresholds.

Capacity goes in, allocatable comes out, in upstream's arithmetic: capacity less what is reserved, never below zero;
memory also less all huge pages. A threshold in percent is of the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.fielderror import render
from nodeward.base.problems import Problems
from nodeward.base.quantity import ZERO, Quantity, QuantityError
from nodeward.kubelet.config.reading import nearest

_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
DEFAULT_EVICTION: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
)
_SIGNALS: Final = (
    *DEFAULT_EVICTION,
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)
#: The thresholds that are kept back, and of what.
_KEPT: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Amounts kept back, and thresholds as they are written (`100Mi`, `10%`).

    `cpus`: the CPUs of reservedSystemCPUs; their number is the amount of `cpu` then.
    """

    amounts: Mapping[str, Quantity] = field(default_factory=lambda: MappingProxyType({}))
    thresholds: Mapping[str, str] = field(default_factory=lambda: DEFAULT_EVICTION)
    cpus: CPUSet = CPUSet.EMPTY

    def allocatable(self, capacity: Mapping[str, Quantity]) -> dict[str, Quantity]:
        found = {}
        for name, amount in capacity.items():
            kept = self.amounts.get(name)
            rest = amount if kept is None else amount - kept
            for signal, of in _KEPT.items():
                if of == name and signal in self.thresholds:
                    rest = rest - _threshold(self.thresholds[signal], amount)
            found[name] = rest if rest > ZERO else ZERO
        pages = [amount for name, amount in capacity.items() if name.startswith("hugepages-")]
        if "memory" in found:
            for amount in pages:
                rest = found["memory"] - amount
                found["memory"] = rest if rest > ZERO else ZERO
        return found


def _threshold(text: str, capacity: Quantity) -> Quantity:
    if text.endswith("%"):
        return Quantity.of_int(int(capacity.value * (float(text[:-1]) / 100)), capacity.format)
    return Quantity.parse(text)


def read_reservation(tree: Mapping[str, Any], problems: Problems) -> Reservation:
    """The reservation of a configuration file."""
    amounts: dict[str, Quantity] = {}
    for field_name in ("systemReserved", "kubeReserved"):
        for name, text in tree.get(field_name, {}).items():
            amount = _reserved(f"{field_name}.{name}", name, text, problems)
            if amount is not None:
                amounts[name] = amounts[name] + amount if name in amounts else amount
    cpus = _reserved_cpus(tree.get("reservedSystemCPUs", ""))
    if cpus:
        amounts["cpu"] = Quantity.of_int(len(cpus))
    given = tree.get("evictionHard")
    thresholds = dict(DEFAULT_EVICTION)
    if given is not None:
        fine = {signal: text for signal, text in given.items() if _is_threshold(signal, text, problems)}
        merged = {**DEFAULT_EVICTION, **fine} if tree.get("mergeDefaultEvictionSettings") else fine
        thresholds = {signal: text for signal, text in merged.items() if text not in ("0%", "100%")}
    return Reservation(MappingProxyType(amounts), MappingProxyType(thresholds), cpus)


def _reserved_cpus(text: str) -> CPUSet:
    try:
        return CPUSet.parse(text)
    except CPUSetError:
        return CPUSet.EMPTY  # `rules.check` has said what is wrong


def _reserved(at: str, name: str, text: str, problems: Problems) -> Quantity | None:
    if name not in _RESERVABLE:
        problems.say(at, f'cannot reserve "{name}" resource; can be reserved: {", ".join(_RESERVABLE)}')
        return None
    try:
        amount = Quantity.parse(text)
    except QuantityError as error:
        problems.say(
            at, f'failed to parse quantity "{text}" for "{name}" resource: {error}; for example 500m or 1Gi'
        )
        return None
    if amount < ZERO:
        problems.say(at, f'resource quantity for "{name}" cannot be negative: {text}')
        return None
    return amount


def _is_threshold(signal: str, text: str, problems: Problems) -> bool:
    at = f"evictionHard.{signal}"
    if signal not in _SIGNALS:
        problems.say(at, f"unsupported eviction signal {signal}{nearest(signal, _SIGNALS)}")
        return False
    try:
        if not text.endswith("%"):
            amount = Quantity.parse(text)
            if amount < ZERO or amount.is_zero:
                problems.say(at, f"eviction threshold {signal} must be positive: {text}")
                return False
        elif not 0 <= (percent := float(text[:-1])) <= 100:
            bound = ">= 0%" if percent < 0 else "<= 100%"
            problems.say(at, f"eviction percentage threshold {signal} must be {bound}: {text}")
            return False
    except (ValueError, QuantityError):
        problems.say(
            at, f"Invalid value: {render(text)}: want a quantity or a percentage, such as 100Mi or 10%"
        )
        return False
    return True
