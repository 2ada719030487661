"""The condition that says why an owner's pods could not be made or deleted.

Unlike upstream, where only replica sets have it: whoever makes pods says so in the same words.

Called by the workload controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from nodeward.base.timestamp import rfc3339

REPLICA_FAILURE: Final = "ReplicaFailure"


class _Condition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def last_transition_time(self) -> str | None: ...


C = TypeVar("C", bound=_Condition)


def with_failure(
    conditions: Sequence[C], make: Callable[..., C], reason: str, failure: str | None, now_ns: int
) -> list[C]:
    """Return the conditions with this failure; without any if `failure` is None. `make` is the kind's condition."""
    others = [each for each in conditions if each.type != REPLICA_FAILURE]
    if failure is None:
        return others
    known = next((each for each in conditions if each.type == REPLICA_FAILURE), None)
    if known is not None and (known.reason, known.message) == (reason, failure):
        return [*conditions]
    # Unlike upstream, which keeps the first message for ever: what is wrong now is what the user can mend.
    since = known.last_transition_time if known is not None else rfc3339(now_ns)
    values: dict[str, Any] = {"reason": reason, "message": failure, "last_transition_time": since}
    return [*others, make(type=REPLICA_FAILURE, status="True", **values)]
