"""How many pods of a group are on each node: a tally per group, kept up to date pod by pod.

A group is what a selector means: pods of some namespaces with some labels. Pods with the same namespace and labels
are of one kind, and a kind knows the groups it belongs to; so a placement costs one addition per group, and a new
group looks at kinds, not at pods. Nothing is counted before a plugin asks the table for `POD_GROUPS`.

What must stay true: a tally holds what counting the pods of the table would give, rows of nodes that are gone
included. Groups nobody asked for lately are dropped when all take too much memory; they are counted anew if need be.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.rules.selectors import LabelRequirements
from nodeward.scheduler.cache.columns import PodIndex
from nodeward.scheduler.framework.pod import PodView

Ints: TypeAlias = NDArray[np.int64]
#: Namespaces (None: all) and a selector (None: selects nothing).
GroupPart: TypeAlias = tuple[frozenset[str] | None, LabelRequirements | None]
_Key: TypeAlias = tuple[str, bool, tuple[tuple[str, str], ...]]

#: What all tallies together may take, in bytes.
MOST_BYTES: Final = 64 * 1024 * 1024
#: Changes a tally remembers at most.
LONGEST_LOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Group:
    """The pods all parts mean. Pods that are being deleted may be left out."""

    parts: tuple[GroupPart, ...]
    with_terminating: bool = True

    def holds(self, namespace: str, labels: Mapping[str, str], *, is_terminating: bool) -> bool:
        """Whether such a pod belongs to it."""
        if is_terminating and not self.with_terminating:
            return False
        return all(
            selector is not None
            and (namespaces is None or namespace in namespaces)
            and selector.matches(labels)
            for namespaces, selector in self.parts
        )

    def holds_pod(self, view: PodView) -> bool:
        return self.holds(view.namespace, view.labels, is_terminating=is_terminating(view))


def is_terminating(view: PodView) -> bool:
    return view.pod.metadata.deletion_timestamp is not None


class Tally:
    """How many pods of one group there are: per row in `column` (not to be changed), and what changed lately."""

    __slots__ = ("_first", "_log", "column")

    def __init__(self, capacity: int) -> None:
        self.column: Ints = np.zeros(capacity, np.int64)
        self._log: list[tuple[int, int]] = []
        self._first = 0

    @property
    def version(self) -> int:
        return self._first + len(self._log)

    def add(self, row: int, amount: int) -> None:
        self.column[row] += amount
        if len(self._log) == LONGEST_LOG:
            self._first += LONGEST_LOG
            self._log.clear()
        self._log.append((row, amount))

    def since(self, version: int) -> list[tuple[int, int]] | None:
        """(row, how many more) after `version`; None: that is too long ago."""
        return self._log[version - self._first :] if version >= self._first else None


class HasRows(Protocol):
    """A table of nodes."""

    capacity: int


class _Kind:
    """Pods that no selector can tell apart."""

    __slots__ = ("labels", "namespace", "rows", "tallies", "terminating")

    def __init__(self, view: PodView) -> None:
        self.namespace = view.namespace
        self.labels = view.labels
        self.terminating = is_terminating(view)
        #: how many of them there are, by row
        self.rows: dict[int, int] = {}
        self.tallies: dict[Group, Tally] = {}

    def belongs_to(self, group: Group) -> bool:
        return group.holds(self.namespace, self.labels, is_terminating=self.terminating)


class PodGroups:
    """The groups of one table."""

    def __init__(self, source: HasRows, *, most_bytes: int = MOST_BYTES) -> None:
        self._source = source
        self._most_bytes = most_bytes
        self._tallies: OrderedDict[Group, Tally] = OrderedDict()
        self._kinds: dict[_Key, _Kind] = {}

    def __len__(self) -> int:
        return len(self._tallies)

    def tally(self, group: Group) -> Tally:
        """How many pods of the group there are. Whoever keeps it must ask again: another one means count anew."""
        tally = self._tallies.get(group)
        if tally is not None:
            self._tallies.move_to_end(group)
            return tally
        tally = self._tallies[group] = Tally(self._source.capacity)
        for kind in self._kinds.values():
            if kind.belongs_to(group):
                kind.tallies[group] = tally
                tally.column[list(kind.rows)] += list(kind.rows.values())
        self._drop_old()
        return tally

    def put_on(self, view: PodView, row: int) -> None:
        """A pod came to a row."""
        key = _key(view)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(view)
            for group, tally in self._tallies.items():
                if kind.belongs_to(group):
                    kind.tallies[group] = tally
        kind.rows[row] = kind.rows.get(row, 0) + 1
        for tally in kind.tallies.values():
            tally.add(row, 1)

    def taken_off(self, view: PodView, row: int) -> None:
        """A pod that came to a row left it."""
        key = _key(view)
        kind = self._kinds[key]
        kind.rows[row] -= 1
        if not kind.rows[row]:
            del kind.rows[row]
        for tally in kind.tallies.values():
            tally.add(row, -1)
        if not kind.rows:
            del self._kinds[key]

    def tells_apart(self, old: PodView, new: PodView) -> bool:
        """Whether a selector may select one version of a pod and not the other."""
        return (
            old.labels != new.labels
            or is_terminating(old) != is_terminating(new)
            or old.namespace != new.namespace
        )

    def grow(self, rows: int) -> None:
        """Drop all tallies: they are made anew, as long as the table is now, when they are next asked for."""
        self._tallies.clear()
        for kind in self._kinds.values():
            kind.tallies.clear()

    def _drop_old(self) -> None:
        most = max(1, self._most_bytes // (8 * self._source.capacity))
        while len(self._tallies) > most:
            group, _ = self._tallies.popitem(last=False)
            for kind in self._kinds.values():
                kind.tallies.pop(group, None)


def _key(view: PodView) -> _Key:
    return view.namespace, is_terminating(view), tuple(sorted(view.labels.items()))


POD_GROUPS: Final = PodIndex("pod groups", PodGroups)
