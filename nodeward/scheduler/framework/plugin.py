"""Extension points: one class per point at which a plugin may take part. Kubernetes' framework, with columns of nodes.

A plugin is one class in one file and one line in the registry. It claims its extension points by type:

    class NodeUnschedulable(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions): ...

`checks.check_plugin` refuses a class that claims a point without having its methods, or has a method of a point it does
not claim. The profile sorts plugins by these types; nothing else asks what a plugin has.

What a plugin declares beside its methods:

* `name`, `default_weight`, `gate`: its entry in the default profile;
* `pod_fields`: what of a pod its filter and score answers depend on. Answers are shared by all pods that are equal in
  the fields of all plugins (`signature.py`), and worked out again only for rows of nodes that changed;
* `objects`: kinds beside nodes and pods that it looks up (`PluginContext.listers`) or wakes pods for; the scheduler
  runs informers for them;
* columns of the node table, as `NodeColumn` or `NodeIndex` values (`cache/columns.py`) that it asks the table for;
* `is_static = True`: its answers depend on the node object alone, so that a placement does not make it answer again.

A filter has the form for one node (`FilterPlugin`, asked in what-if questions of preemption) and, if many pods need it,
also the form for many nodes (`ColumnFilterPlugin`); the same holds for scores. A test proves that the forms of the
shipped plugins agree. `CycleState` carries what a plugin worked out for one pod in `pre_filter` to its later calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from nodeward.scheduler.framework.events import ClusterEventWithHint
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.signature import PodField
from nodeward.scheduler.framework.status import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nodeward.api.core_v1.node import Node
    from nodeward.api.meta import KubeObject
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.context import PluginContext

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

#: Scores go from 0 to this.
MAX_SCORE = 100


@dataclass(slots=True)
class CycleState:
    """What plugins remember for one signature (or, if stateful, for one pod) between their calls."""

    pod: PodView
    data: dict[str, Any] = field(default_factory=dict)
    #: plugins that had nothing to do for this pod
    skipped_filters: set[str] = field(default_factory=set)
    skipped_scores: set[str] = field(default_factory=set)

    def copy(self) -> CycleState:
        """A cycle that can be changed without this one: values that have a `copy()` are copied."""
        data = {name: value.copy() if hasattr(value, "copy") else value for name, value in self.data.items()}
        return CycleState(self.pod, data, set(self.skipped_filters), set(self.skipped_scores))


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """A filter's column answer: which of the asked rows do not fit, and how each is explained.

    `reasons[i]` explains rows whose `which == i`; its code says whether preemption can help.
    """

    #: per asked row: -1 fits, else an index into `reasons`
    which: Ints
    reasons: Sequence[Status]


@dataclass(frozen=True, slots=True)
class RejectionNotes:
    """What exactly a plugin has against rows it rejected: `texts[which[i]]` are the notes on the i-th of them."""

    which: Ints
    texts: Sequence[tuple[str, ...]]


class Plugin(ABC):
    """What every plugin has. It is made once per profile."""

    name: ClassVar[str]
    #: the weight of its score in the default profile; 0: it does not score
    default_weight: ClassVar[int] = 0
    #: the feature gate without which the plugin does not exist
    gate: ClassVar[str] = ""
    #: kinds beside nodes and pods that it looks up, or whose changes wake pods it rejected
    objects: ClassVar[tuple[type[KubeObject], ...]] = ()
    #: what of a pod its answers depend on: paths from the pod, or functions of a `PodView`
    pod_fields: Sequence[PodField]
    #: whether its answers depend on the node object alone
    is_static: ClassVar[bool] = False

    def __init__(self, context: PluginContext) -> None:
        """`context` is all that may shape a plugin; one that needs nothing of it has no `__init__`."""
        del context


# -- before a pod is tried


class QueueSortPlugin(Plugin):
    @abstractmethod
    def less(self, one: Any, other: Any) -> bool:
        """Say whether queued pod `one` is tried before `other`."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: PodView) -> Status:
        """Say whether the pod may enter the active queue. If not it waits, gated, until an event changes that."""


class EnqueueExtensions(Plugin):
    """A plugin that can reject pods and does not claim this is taken to be helped by every event."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Name the events that may make a pod schedulable that this plugin rejected."""


# -- which nodes fit


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        """Work out what the filter needs, once; SKIP: the filter has nothing to say about this pod."""


class PreFilterNodes(PreFilterPlugin):
    @abstractmethod
    def only_nodes(self, cycle: CycleState, pod: PodView) -> Sequence[str] | None:
        """Name the only nodes the pod can go to, if the plugin knows (None: any)."""


class PreFilterExtensions(PreFilterPlugin):
    """For a plugin whose `pre_filter` looks at other pods: preemption asks what would be with others, or without.

    Values such a plugin keeps in the cycle have a `copy()`.
    """

    @abstractmethod
    def add_pod(self, cycle: CycleState, pod: PodView, added: PodView, node: Node) -> Status:
        """Bring the cycle to what it would be if `added` were on the node."""

    @abstractmethod
    def remove_pod(self, cycle: CycleState, pod: PodView, removed: PodView, node: Node) -> Status:
        """Bring the cycle to what it would be if `removed` were not on the node."""


class FilterPlugin(Plugin):
    @abstractmethod
    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        """Say whether the pod can go to one node."""


class ColumnFilterPlugin(FilterPlugin):
    @abstractmethod
    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        """Say which of `rows` do not fit (None: all fit)."""


class NotedFilterPlugin(ColumnFilterPlugin):
    """A filter whose reasons are few, so that nodes can be counted by them, and that can tell more of each node."""

    @abstractmethod
    def rejection_notes(self, pod: PodView, table: NodeTable, rows: Ints) -> RejectionNotes:
        """Say what exactly it has against rows that its `filter_rows` rejected. Asked when a failure is told."""


class ExplainedFilterPlugin(ColumnFilterPlugin):
    """A filter that can tell more of nodes it rejected than events can say. Only asked by who explains a pod."""

    @abstractmethod
    def explain_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectionNotes:
        """Say what exactly it has against rows that its `filter_rows` rejected in this cycle."""


class RowFilterPlugin(ColumnFilterPlugin):
    """A filter that answers quickly for one row. Pods with equal keys share its answers."""

    @abstractmethod
    def row_key(self, cycle: CycleState) -> Hashable:
        """Name all that the answers for a row depend on, beside what is in the row."""

    @abstractmethod
    def fits_row(self, cycle: CycleState, table: NodeTable, row: int) -> bool:
        """Answer as `filter_rows` does, for one row."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter plugin answers. SUCCESS: the pod is to wait for `node`, once `work` is done."""

    status: Status
    node: str = ""
    #: what the API must be told (victims deleted, ...); the scheduler runs it beside its work
    work: Callable[[], Awaitable[None]] | None = None
    #: no success, and a node promised to the pod before is of no use: the promise is to be taken back
    clears: bool = False


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, cycle: CycleState, pod: PodView, table: NodeTable, rejected: Mapping[str, Status]
    ) -> PostFilterResult:
        """No node fits (`rejected` says why, by name): make room, or explain why that is impossible."""


# -- which node is best


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        """Work out what the score needs; SKIP: all nodes are alike to this plugin."""


class ScorePlugin(Plugin):
    @abstractmethod
    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        """Give the raw score of one node."""


class ColumnScorePlugin(ScorePlugin):
    @abstractmethod
    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        """Give the raw scores of `rows`."""


class RowScorePlugin(ColumnScorePlugin):
    """A score that is quick for one row. Pods with equal keys share it."""

    @abstractmethod
    def row_key(self, cycle: CycleState) -> Hashable:
        """Name all that the score of a row depends on, beside what is in the row."""

    @abstractmethod
    def score_row(self, cycle: CycleState, table: NodeTable, row: int) -> int:
        """Give what `score_rows` gives, for one row."""


class ScoreExtensions(ScorePlugin):
    """Without this, raw scores are taken as they are: from 0 to 100."""

    @abstractmethod
    def normalize(self, cycle: CycleState, scores: Ints) -> Ints:
        """Bring the raw scores of all feasible nodes to 0..100."""


# -- how answers are shared


class StatefulPlugin(Plugin):
    """A plugin whose answers depend on more than the node and the pod's fields: other pods, objects, reservations.

    It is asked anew for every pod it concerns, and is not asked about any other pod: neither its filter and score
    nor Reserve, Permit, PreBind and PostBind. Pods that no stateful plugin concerns share their answers.
    """

    #: a field of the pod: pods in which it is empty do not concern the plugin, and cost it nothing; "": ask every pod
    concerns_pods_with: ClassVar[str] = ""

    @abstractmethod
    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        """Say whether the pod is this plugin's business. Asked for every pod, so it must be quick."""


class SharedStatePlugin(Plugin):
    @abstractmethod
    def shared_state(self, cycle: CycleState, table: NodeTable) -> object:
        """Give a value that the answers for all rows depend on; when it changes, all rows are asked anew."""


# -- once there is a node


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        """Take what the pod needs on the node, in memory, before the next pod is decided about."""

    @abstractmethod
    def unreserve(self, cycle: CycleState, pod: PodView, node: str) -> None:
        """Undo; called in reverse order for every plugin if anything later fails. Must not fail itself."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, cycle: CycleState, pod: PodView, node: str) -> tuple[Status, float]:
        """Answer SUCCESS, a rejection, or WAIT with the seconds after which waiting is a rejection."""


class PreBindPlugin(Plugin):
    @abstractmethod
    async def pre_bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        """Do what the API must know before the pod is bound."""


class BindPlugin(Plugin):
    @abstractmethod
    async def bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        """Bind the pod; SKIP passes it to the next bind plugin."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, cycle: CycleState, pod: PodView, node: str) -> None:
        """Hear that the pod is bound."""


#: The extension points by the names a configuration file has for them, and the types of plugins that take part.
EXTENSION_POINTS: Mapping[str, type[Plugin]] = {
    "queueSort": QueueSortPlugin,
    "preEnqueue": PreEnqueuePlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
