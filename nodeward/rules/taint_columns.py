"""Tolerations against thousands of nodes at once: nodes hold the id of their taint set, and a set is judged once.

Clusters have few different sets of taints. `TaintSets` gives each an id; a node is a number in an array. The first
time a list of tolerations asks, each set is judged by the plain rules; after that the answer for all nodes is one
array lookup, whatever operators are used. So a numeric comparison costs what an equality costs. A set never changes.
Values that are measured make new sets all the time: whoever holds the ids calls `keep_only` now and then, which forgets
sets that no node has any more and gives the others new ids. Until then an id stands for one set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.rules.taints import BLOCKING, untolerated, unwelcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids: TypeAlias = NDArray[np.int32]
    Answers: TypeAlias = NDArray[np.bool_]
    Counts: TypeAlias = NDArray[np.int32]

_Key: TypeAlias = tuple[tuple[str, str, str, str], ...]

#: Lists of tolerations remembered; when there are more, all are forgotten and judged again as they come.
REMEMBERED: Final = 4096


class TaintSetMatches(NamedTuple):
    """What a list of tolerations means for every taint set, by the id of the set."""

    #: whether a pod may be scheduled there
    fits: Answers
    #: how many PreferNoSchedule taints are not tolerated
    unwelcome: Counts
    #: the taints that keep the pod off, as they are listed
    blocking: list[tuple[Taint, ...]]


class TaintSets:
    """The taint sets of one cluster, for components whose gate for numeric operators is on, or off."""

    def __init__(self, *, numeric: bool) -> None:
        self._numeric = numeric
        self._ids: dict[tuple[tuple[str, str, str], ...], int] = {}
        self._sets: list[tuple[Taint, ...]] = []
        self._answers: dict[_Key, TaintSetMatches] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def id_of(self, taints: Sequence[Taint]) -> int:
        """Return the id of a set; nodes with equal taints in equal order share one. Times do not count."""
        key = _key(taints)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._sets)
            self._sets.append(tuple(taints))
        return found

    def keep_only(self, ids: Ids) -> Ids:
        """Forget all sets but those of these ids; return the new ids, which replace every old one anywhere."""
        import numpy as np

        used, fresh = np.unique(ids, return_inverse=True)
        self._sets = [self._sets[each] for each in used.tolist()]
        self._ids = {_key(taints): number for number, taints in enumerate(self._sets)}
        self._answers.clear()
        return fresh.astype(np.int32)

    def are_tolerated(self, tolerations: Sequence[Toleration], ids: Ids) -> Answers:
        """Return for each node, by the id of its taint set, whether a pod with these tolerations may be scheduled."""
        return self.judge(tolerations).fits[ids]

    def unwelcome(self, tolerations: Sequence[Toleration], ids: Ids) -> Counts:
        """Return for each node how many PreferNoSchedule taints the pod does not tolerate."""
        return self.judge(tolerations).unwelcome[ids]

    def judge(self, tolerations: Sequence[Toleration]) -> TaintSetMatches:
        """Return the answers for every taint set, by its id, for callers that look up single nodes or ask twice."""
        import numpy as np

        key = tuple((each.key, each.operator, each.value, each.effect) for each in tolerations)
        known = self._answers.get(key)
        if known is not None and len(known.fits) == len(self._sets):
            return known
        numeric = self._numeric
        # Sets are only ever added, so what is known stays true and only the new ones are judged.
        first = 0 if known is None else len(known.fits)
        fresh = self._sets[first:]
        blocking = [tuple(untolerated(each, tolerations, *BLOCKING, numeric=numeric)) for each in fresh]
        fits = np.array([not each for each in blocking], bool)
        counts = np.array([unwelcome(each, tolerations, numeric=numeric) for each in fresh], np.int32)
        if known is not None:
            fits, counts = np.concatenate((known.fits, fits)), np.concatenate((known.unwelcome, counts))
            blocking = known.blocking + blocking
        elif len(self._answers) >= REMEMBERED:
            self._answers.clear()
        found = self._answers[key] = TaintSetMatches(fits, counts, blocking)
        return found


def _key(taints: Sequence[Taint]) -> tuple[tuple[str, str, str], ...]:
    """Return what tells sets apart."""
    return tuple((taint.key, taint.value, taint.effect) for taint in taints)
