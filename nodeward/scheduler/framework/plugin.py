"""Extension points: what a plugin may take part in. Kubernetes' framework, with columns of nodes instead of one node.

A plugin is one class in one file, with a `name` and as many of the methods below as it needs; the scheduler looks at
which it has. Filters and scores come in two forms: the *column* form answers for many nodes at once with numpy arrays,
the *plain* form for one node. A plugin needs only one of them; shipped plugins have both, and a test proves that they
agree. `Cycle` carries what one plugin worked out for one pod in `pre_filter` to its later calls.

A plugin's answers for pods of equal `signature` are shared, and recomputed only for rows that changed. It may say more:

* `is_static = True`: its answers depend on the node's object alone, so that a placement does not make it answer again;
* `shared_state(cycle, table)`: a value its answers for all rows depend on; when that changes, all are asked anew;
* `is_volatile(pod, table)`: its answers depend on where other pods are, and are worked out for every pod anew;
* `row_key(cycle)`: all its answers depend on, beside what is in the row; then it also has `fits_row(cycle, table, row)`
  and `score_row(cycle, table, row)`, the column forms for a single row. Pods with equal keys share its answers;
* `is_about_volumes = True`: pods without volumes are none of its business, be it here or once they have a node.

Preemption asks what would be if pods were not there, or were: a plugin whose `pre_filter` looked at other pods has
`add_pod` and `remove_pod`, which bring what it keeps in the cycle up to date; its values there have a `copy()`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from nodeward.scheduler.framework.events import Registered
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nodeward.api.core_v1.node import Node
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

#: Scores go from 0 to this.
MAX_SCORE = 100


@dataclass(slots=True)
class Cycle:
    """What plugins remember for one signature (or, if volatile, for one pod) between their calls."""

    pod: PodView
    data: dict[str, Any] = field(default_factory=dict)
    #: plugins that had nothing to do for this pod
    skipped_filters: set[str] = field(default_factory=set)
    skipped_scores: set[str] = field(default_factory=set)

    def copy(self) -> Cycle:
        """A cycle that can be changed without this one: values that have a `copy()` are copied."""
        data = {name: value.copy() if hasattr(value, "copy") else value for name, value in self.data.items()}
        return Cycle(self.pod, data, set(self.skipped_filters), set(self.skipped_scores))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A filter's column answer: which of the asked rows do not fit, and how each is explained.

    `reasons[i]` explains rows whose `which == i`; `unresolvable` says for which of them preemption cannot help.
    """

    #: per asked row: -1 fits, else an index into `reasons`
    which: Ints
    reasons: Sequence[Status]


@dataclass(frozen=True, slots=True)
class Notes:
    """What exactly a plugin has against rows it rejected: `texts[which[i]]` are the notes on the i-th of them."""

    which: Ints
    texts: Sequence[tuple[str, ...]]


class Plugin(Protocol):
    """What every plugin has."""

    name: ClassVar[str]


class PreEnqueue(Plugin, Protocol):
    def pre_enqueue(self, pod: PodView) -> Status:
        """May the pod enter the active queue? If not it waits, gated, until an event changes that."""
        ...


class EnqueueExtensions(Plugin, Protocol):
    def events_to_register(self) -> Sequence[Registered]:
        """The events that may make a pod schedulable that this plugin rejected."""
        ...


class PreFilter(Plugin, Protocol):
    def pre_filter(self, cycle: Cycle, pod: PodView, table: NodeTable) -> Status:
        """Work out what the filter needs, once; SKIP: the filter has nothing to say about this pod."""
        ...

    def only_nodes(self, cycle: Cycle, pod: PodView) -> Sequence[str] | None:
        """The only nodes the pod can go to, if the plugin knows (None: any)."""
        ...


class ColumnFilter(Plugin, Protocol):
    def filter_rows(self, cycle: Cycle, table: NodeTable, rows: Ints) -> Rejected | None:
        """Which of `rows` do not fit (None: all fit)."""
        ...


class NotedFilter(Plugin, Protocol):
    """A filter whose reasons are few, so that nodes can be counted by them, and that can tell more of each node."""

    def rejection_notes(self, pod: PodView, table: NodeTable, rows: Ints) -> Notes:
        """What exactly it has against rows that its `filter_rows` rejected. Asked when a failure is told."""
        ...


class PlainFilter(Plugin, Protocol):
    def filter(self, cycle: Cycle, pod: PodView, node: NodeView) -> Status: ...


class PreFilterExtensions(Plugin, Protocol):
    """What would `pre_filter` have found if another pod were on a node, or were not?"""

    def add_pod(self, cycle: Cycle, pod: PodView, added: PodView, node: Node) -> Status: ...

    def remove_pod(self, cycle: Cycle, pod: PodView, removed: PodView, node: Node) -> Status: ...


@dataclass(frozen=True, slots=True)
class MadeRoom:
    """What a PostFilter plugin answers. SUCCESS: the pod is to wait for `node`, once `work` is done."""

    status: Status
    node: str = ""
    #: what the API must be told (victims deleted, ...); the scheduler runs it beside its work
    work: Callable[[], Awaitable[None]] | None = None
    #: no success, and a node promised to the pod before is of no use: the promise is to be taken back
    clears: bool = False


class PostFilter(Plugin, Protocol):
    def post_filter(
        self, cycle: Cycle, pod: PodView, table: NodeTable, rejected: Mapping[str, Status]
    ) -> MadeRoom:
        """No node fits (`rejected` says why, by name): make room, or explain why that is impossible."""
        ...


class PreScore(Plugin, Protocol):
    def pre_score(self, cycle: Cycle, pod: PodView, table: NodeTable) -> Status:
        """Work out what the score needs; SKIP: all nodes are alike to this plugin."""
        ...


class ColumnScore(Plugin, Protocol):
    def score_rows(self, cycle: Cycle, table: NodeTable, rows: Ints) -> Ints:
        """Raw scores of `rows`."""
        ...

    def normalize(self, cycle: Cycle, scores: Ints) -> Ints:
        """Raw scores of all feasible nodes, brought to 0..100. Without this method they are taken as they are."""
        ...


class PlainScore(Plugin, Protocol):
    def score(self, cycle: Cycle, pod: PodView, node: NodeView) -> int: ...


class Volatile(Plugin, Protocol):
    def is_volatile(self, pod: PodView, table: NodeTable | None = None) -> bool:
        """Whether the answers for this pod depend on where other pods are. Asked for every pod, so it must be quick."""
        ...


class Reserve(Plugin, Protocol):
    def reserve(self, cycle: Cycle, pod: PodView, node: str) -> Status: ...

    def unreserve(self, cycle: Cycle, pod: PodView, node: str) -> None:
        """Undo; called in reverse order for every plugin if anything later fails. Must not fail itself."""
        ...


class Permit(Plugin, Protocol):
    def permit(self, cycle: Cycle, pod: PodView, node: str) -> tuple[Status, float]:
        """SUCCESS, a rejection, or WAIT with the seconds after which waiting is a rejection."""
        ...


class PreBind(Plugin, Protocol):
    async def pre_bind(self, cycle: Cycle, pod: PodView, node: str) -> Status: ...


class Bind(Plugin, Protocol):
    async def bind(self, cycle: Cycle, pod: PodView, node: str) -> Status:
        """SKIP passes the pod to the next bind plugin."""
        ...


class PostBind(Plugin, Protocol):
    def post_bind(self, cycle: Cycle, pod: PodView, node: str) -> None: ...
