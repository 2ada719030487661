"""How long plugins take: measured in a sample of decisions only, since reading the clock costs as much as some plugins.

The engine sets a timer in the `PluginSet` for a sampled decision; then every call of a plugin is timed and reported to
`tell`, in seconds. What one extension point took in all is added up until `lap`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.scheduler.framework.status import Code, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.plugin_set import Ints, PluginPart
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.plugin import CycleState, RejectedRows

T = TypeVar("T")


class PluginTimer:
    """Times plugins. `now_ns` is the clock, `tell` gets (extension point, plugin, status, seconds)."""

    def __init__(self, now_ns: Callable[[], int], tell: Callable[[str, str, str, float], None]) -> None:
        self._now_ns = now_ns
        self._tell = tell
        self._points: Final[dict[str, float]] = {}

    def timed(self, point: str, plugin: str, call: Callable[..., T], *arguments: Any) -> T:
        """Call, and tell how long it took."""
        began = self._now_ns()
        answer = call(*arguments)
        status = answer.code.value if isinstance(answer, Status) else Code.SUCCESS.value
        self._add(point, plugin, status, began)
        return answer

    def filter_rows(
        self, part: PluginPart, cycle: CycleState, table: NodeTable, rows: Ints
    ) -> RejectedRows | None:
        began = self._now_ns()
        answer = part.filter_rows(cycle, table, rows)
        self._add("Filter", part.name, (Code.UNSCHEDULABLE if answer else Code.SUCCESS).value, began)
        return answer

    def score_rows(self, part: PluginPart, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        return self.timed("Score", part.name, part.score_rows, cycle, table, rows)

    def lap(self) -> dict[str, float]:
        """Seconds by extension point since the last lap."""
        found = dict(self._points)
        self._points.clear()
        return found

    def _add(self, point: str, plugin: str, status: str, began: int) -> None:
        seconds = (self._now_ns() - began) / SECOND_NS
        self._points[point] = self._points.get(point, 0.0) + seconds
        self._tell(point, plugin, status, seconds)
