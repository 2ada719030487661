"""Why a node's devices cannot be had: per request, which check excludes which devices, in a few lines for people.

First each request is asked for alone: a device is excluded by a selector, or by what `TrialDevices` checks. If every
request could be satisfied alone, devices are given to one request after the other, and the first that is left without
is explained, beside what the others were given. Devices excluded for the same reason share a line.

What must stay true: no rule is repeated here; the checks are those of the search. The work is bounded by a
`SearchBudget`, and the answer by `MOST_LINES`.

Called by `PodAllocator.explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from nodeward.api.resource_v1 import DeviceConstraint
from nodeward.rules.devices.device_id import DeviceID
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.holders import DeviceHolder
from nodeward.rules.devices.inventory import NodePools, PoolDevice, VisiblePool
from nodeward.rules.devices.requests import RequestToAllocate
from nodeward.rules.devices.search import ClaimOnNode, RequestOnNode, SearchBudget
from nodeward.rules.devices.taking import DeviceCheck, Trial, TrialDevices

#: Lines about one node.
MOST_LINES: Final = 10
#: Devices and claims that one line names, and characters of an expression.
_NAMED: Final = 3
_LONGEST: Final = 200

DeviceHolders: TypeAlias = "Mapping[DeviceID, Sequence[DeviceHolder]]"
#: (claim by number, request, device) -> why the request does not select the device; "": it does
Unselected: TypeAlias = "Callable[[int, RequestToAllocate, PoolDevice], str]"


@dataclass(slots=True)
class _Excluded:
    """The devices that were excluded for one reason, and the claims that have them."""

    devices: list[str] = field(default_factory=list)
    claims: dict[str, None] = field(default_factory=dict)
    is_unselected: bool = False


class DeviceExclusions:
    """Explains the claims of one pod on one node."""

    def __init__(
        self,
        described: Sequence[tuple[str, Sequence[DeviceConstraint]]],
        claims: Sequence[ClaimOnNode],
        pools: NodePools,
        trials: TrialDevices,
        unselected: Unselected,
        holders: DeviceHolders,
        budget: SearchBudget,
    ) -> None:
        """`described`: the name and the constraints of each claim."""
        self._described: Final = described
        self._claims: Final = claims
        self._pools: Final = pools
        self._trials: Final = trials
        self._unselected: Final = unselected
        self._holders: Final = holders
        self._budget: Final = budget

    def lines(self) -> tuple[str, ...]:
        """Return what there is to say, at most `MOST_LINES`."""
        found = self._about_pools()
        alone = [
            line
            for number, claim in enumerate(self._claims)
            for request in claim.requests
            for line in self._about(number, request)
        ]
        found += alone or self._together()
        if len(found) > MOST_LINES:
            found[MOST_LINES - 1 :] = [f"and {len(found) - MOST_LINES + 1} more reasons"]
        return tuple(found)

    def _about_pools(self) -> list[str]:
        return [
            f"pool {pool.id} gives no devices: it is {'incomplete' if pool.is_incomplete else f'invalid, {pool.fault}'}"
            for pool in self._pools.pools
            if not pool.gives_devices
        ]

    def _about(self, number: int, alternatives: Sequence[RequestOnNode]) -> list[str]:
        """Explain a request that cannot be satisfied even alone: each of its alternatives."""
        found: list[str] = []
        for wanted in alternatives:
            lines = self._tried(number, wanted, keep=None)
            if not lines:
                return []
            found += lines
        return found

    def _together(self) -> list[str]:
        """Give devices to one request after the other, and explain the first that is left without."""
        kept: list[Trial] = []
        found: list[str] = []
        for number, claim in enumerate(self._claims):
            for alternatives in claim.requests:
                found = []
                for wanted in alternatives:
                    lines = self._tried(number, wanted, keep=kept)
                    found += lines
                    if not lines:
                        found = []
                        break
                if found:
                    break
            if found:
                break
        for trial in reversed(kept):
            self._trials.undo(trial)
        return found or ["each request can be satisfied alone, but not all of them together"]

    def _tried(self, number: int, wanted: RequestOnNode, keep: list[Trial] | None) -> list[str]:
        """Try to take the devices of a request; return why they cannot be had, nothing if they can.

        `keep`: the devices stay taken, and are added here; without, every device is tried for itself.
        """
        excluded: dict[str, _Excluded] = {}
        trials: list[Trial] = []
        had = 0
        count = wanted.count if wanted.all_devices is None or wanted.all_devices else 1
        for device, pool in wanted.all_devices or self._pools.devices:
            self._budget.spend()
            answer = self._take(number, wanted.request, device, pool)
            if isinstance(answer, Trial):
                had += 1
                if keep is None:
                    self._trials.undo(answer)
                else:
                    trials.append(answer)
                if had == count:
                    break
                continue
            reason, claims = answer
            group = excluded.setdefault(reason, _Excluded(is_unselected=claims is None))
            group.devices.append(self._name(device))
            group.claims.update(dict.fromkeys(claims or ()))
        if had == count:
            if keep is not None:
                keep += trials
            return []
        for trial in reversed(trials):
            self._trials.undo(trial)
        return self._written(number, wanted, had, excluded, others=keep is not None)

    def _take(
        self, number: int, request: RequestToAllocate, device: PoolDevice, pool: VisiblePool
    ) -> Trial | tuple[str, Sequence[str] | None]:
        """Take a device, or say why not, and which claims have it; None: the request does not select it."""
        try:
            reason = self._unselected(number, request, device)
            if reason:
                return _short(reason), None
            if self._trials.is_free(number, request, device) and not self._trials.has_capacity(
                number, request, device
            ):
                return "without the capacity that is requested, beside what is taken", self._claims_on(device)
            trial = self._trials.take(number, request, device, pool, is_required=False)
        except AllocationError as error:
            return _short(str(error)), ()
        return trial if trial is not None else self._refusal(number, device)

    def _refusal(self, number: int, device: PoolDevice) -> tuple[str, Sequence[str]]:
        trials = self._trials
        if trials.failed is DeviceCheck.FREE:
            held = self._claims_on(device)
            return ("in use", held) if held else ("given to another request of the pod", ())
        if trials.failed is DeviceCheck.TAINTS and trials.blocking is not None:
            taint = trials.blocking
            value = f"={taint.value}" if taint.value else ""
            return f"with the untolerated taint {taint.key}{value}:{taint.effect}", ()
        if trials.failed is DeviceCheck.COUNTERS:
            return "without enough left of the counters that its partitions share", ()
        if trials.failed is DeviceCheck.NODE_OPERATIONS:
            return "with skipNodeOperations, which the scheduler or the node does not support", ()
        constraint = self._described[number][1][trials.violated]
        if constraint.match_attribute is not None:
            return (
                f"excluded by constraint #{trials.violated}, matchAttribute {constraint.match_attribute}",
                (),
            )
        return (
            f"excluded by constraint #{trials.violated}, distinctAttribute {constraint.distinct_attribute}",
            (),
        )

    def _claims_on(self, device: PoolDevice) -> list[str]:
        return [each.claim for each in self._holders.get(device.id, ()) if not each.admin_access]

    def _name(self, device: PoolDevice) -> str:
        return device.id.device if len(self._pools.pools) == 1 else f"{device.id.pool}/{device.id.device}"

    def _written(
        self, number: int, wanted: RequestOnNode, had: int, excluded: Mapping[str, _Excluded], *, others: bool
    ) -> list[str]:
        where = f"claim {self._described[number][0]}, request {wanted.request.full_name}"
        total = len(self._pools.devices)
        if wanted.all_devices is None:
            amount = f"{wanted.count} device{'' if wanted.count == 1 else 's'}"
        else:
            amount = "all devices that it selects"
        beside = " beside those given before" if others else ""
        lines = [f"{where}: wants {amount}, can have {had} of {total}{beside}"]
        # Devices that the request does not even select come last.
        by_interest = sorted(
            excluded.items(), key=lambda each: (each[1].is_unselected, -len(each[1].devices), each[0])
        )
        for reason, group in by_interest:
            by = f" by {_few([*group.claims])}" if group.claims else ""
            lines.append(f"{where}: {len(group.devices)} {reason}{by} ({_few(group.devices)})")
        return lines


def _few(names: Sequence[str]) -> str:
    more = f", {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _short(text: str) -> str:
    """Return the text on one line, of bounded length."""
    line = " ".join(text[: 2 * _LONGEST].split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
