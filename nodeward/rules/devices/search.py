"""The search for devices: every claim of a pod gets what it requests, or none does.

Depth first over claims, requests, alternatives and devices, in order; the first full solution wins. Within a request
devices are tried in ascending order only, since their order does not matter. What was chosen is taken back before the
next choice is tried.

A claim has at most 32 results. A request that would exceed them ends the branch at the nearest earlier choice between
alternatives of the claim, since other devices would not make it smaller.

What must stay true: the work is bounded by a `SearchBudget`, whatever claims ask for; nothing here recurses.

Called by `allocator.py` with requests that are valid on the node; calls `taking`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from nodeward.rules.devices.constraints import ClaimConstraint
from nodeward.rules.devices.errors import SearchLimitReached
from nodeward.rules.devices.inventory import PoolDevice, VisiblePool
from nodeward.rules.devices.requests import MOST_DEVICES, RequestToAllocate
from nodeward.rules.devices.taking import Trial, TrialDevices

#: (claim by number, request, device) -> whether the request selects the device on this node
DeviceSelection: TypeAlias = Callable[[int, RequestToAllocate, PoolDevice], bool]


class SearchBudget:
    """How many devices searches may still look at. One budget may serve the searches on many nodes."""

    __slots__ = ("left",)

    def __init__(self, devices: int) -> None:
        self.left = devices

    def spend(self) -> None:
        """Count one device; `SearchLimitReached` if there were too many."""
        self.left -= 1
        if self.left < 0:
            raise SearchLimitReached("timed out trying to allocate devices")


@dataclass(frozen=True, slots=True, eq=False)
class RequestOnNode:
    """A request (or alternative of one) on one node."""

    request: RequestToAllocate
    count: int
    #: the devices that a request for all devices gets; None if it asks for a number
    all_devices: tuple[tuple[PoolDevice, VisiblePool], ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class ClaimOnNode:
    """A claim on one node: per request its alternatives, and the constraints."""

    requests: tuple[tuple[RequestOnNode, ...], ...]
    constraints: tuple[ClaimConstraint, ...]


class _End(Enum):
    """How a branch of the search ended."""

    SOLVED = "solved"
    FAILED = "failed"
    #: a claim would have more devices than it can have
    TOO_MANY = "too many"


@dataclass(frozen=True, slots=True)
class _Position:
    """The next device to find."""

    claim: int
    request: int
    #: -1: an alternative is to be chosen first
    alternative: int = -1
    #: how many devices of the request were found before
    found: int = 0
    #: the first device that is tried
    start: int = 0


@dataclass(slots=True)
class _Choice:
    """A place the search can come back to: a choice between alternatives, or between devices."""

    at: _Position
    #: the alternative that is tried, or the device that is tried next
    cursor: int
    trial: Trial | None = None
    #: every alternative so far had too many devices
    is_all_too_many: bool = True


class DeviceSearch:
    """One search on one node. After a successful `run`, `trials.chosen` has the devices of each claim."""

    def __init__(
        self,
        claims: Sequence[ClaimOnNode],
        devices: Sequence[tuple[PoolDevice, VisiblePool]],
        trials: TrialDevices,
        selects: DeviceSelection,
        budget: SearchBudget,
    ) -> None:
        self._claims: Final = claims
        self._devices: Final = devices
        self._trials: Final = trials
        self._selects: Final = selects
        self._budget: Final = budget
        self._choices: Final[list[_Choice]] = []

    def run(self) -> bool:
        """Find devices for all claims; False: they cannot all be had on this node."""
        step: _Position | _End = _Position(0, 0)
        while step is not _End.SOLVED:
            if isinstance(step, _Position):
                step = self._descend(step)
            elif self._choices:
                step = self._come_back(step)
            else:
                return False
        return True

    def alternatives(self) -> list[list[int]]:
        """Return, per claim and request, which alternative was chosen."""
        found: list[list[int]] = [[0] * len(claim.requests) for claim in self._claims]
        for choice in self._choices:
            if choice.at.alternative < 0:
                found[choice.at.claim][choice.at.request] = choice.cursor
        return found

    def _descend(self, at: _Position) -> _Position | _End:
        """Go on from a position."""
        if at.claim >= len(self._claims):
            return _End.SOLVED
        requests = self._claims[at.claim].requests
        if at.request >= len(requests):
            return _Position(at.claim + 1, 0)
        if at.alternative < 0:
            self._choices.append(_Choice(at, 0))
            return _Position(at.claim, at.request, 0)
        wanted = requests[at.request][at.alternative]
        if wanted.all_devices is not None and not wanted.all_devices:
            return _End.FAILED
        if at.found >= wanted.count:
            return _Position(at.claim, at.request + 1)
        if len(self._trials.chosen[at.claim]) + wanted.count - at.found > MOST_DEVICES:
            return _End.TOO_MANY
        choice = _Choice(at, at.start)
        self._choices.append(choice)
        return self._next_device(choice, wanted)

    def _come_back(self, end: _End) -> _Position | _End:
        """Go back to the last choice, and on from there with the next one."""
        choice = self._choices[-1]
        at = choice.at
        alternatives = self._claims[at.claim].requests[at.request]
        if at.alternative < 0:
            return self._next_alternative(choice, len(alternatives), end)
        if choice.trial is not None:
            self._trials.undo(choice.trial)
            choice.trial = None
        wanted = alternatives[at.alternative]
        if end is _End.TOO_MANY or wanted.all_devices is not None:
            self._choices.pop()
            return end
        return self._next_device(choice, wanted)

    def _next_alternative(self, choice: _Choice, number: int, end: _End) -> _Position | _End:
        at = choice.at
        if end is not _End.TOO_MANY:
            choice.is_all_too_many = False
        choice.cursor += 1
        if choice.cursor < number:
            return _Position(at.claim, at.request, choice.cursor)
        self._choices.pop()
        # Beyond its first request the claim ends, and an earlier claim that gets other devices may help.
        return _End.TOO_MANY if choice.is_all_too_many and at.request > 0 else _End.FAILED

    def _next_device(self, choice: _Choice, wanted: RequestOnNode) -> _Position | _End:
        """Take the next device that can be had; leave the choice if there is none."""
        at, request, trials = choice.at, wanted.request, self._trials
        if wanted.all_devices is not None:
            self._budget.spend()
            device, pool = wanted.all_devices[at.found]
            choice.trial = trials.take(at.claim, request, device, pool, is_required=True)
            if choice.trial is not None:
                return _Position(at.claim, at.request, at.alternative, at.found + 1)
        else:
            devices, spend = self._devices, self._budget.spend
            while choice.cursor < len(devices):
                device, pool = devices[choice.cursor]
                choice.cursor += 1
                spend()
                if not (
                    trials.is_free(at.claim, request, device)
                    and self._selects(at.claim, request, device)
                    and trials.has_capacity(at.claim, request, device)
                ):
                    continue
                choice.trial = trials.take(at.claim, request, device, pool, is_required=False)
                if choice.trial is not None:
                    return _Position(at.claim, at.request, at.alternative, at.found + 1, choice.cursor)
        self._choices.pop()
        return _End.FAILED
