"""What a reporter says and when: first that it does not know yet, then what it has found out, then only changes.

Given the result of a check and the time, it says which condition to write, or that there is nothing new. What was
last written is remembered, because the right to patch a node's status is not the right to read it; an off-node
reporter, whose node may reboot without it, is told what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.core_v1.node import NodeCondition
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.reporting.settings import UNTIL_SUCCESS, ReporterSettings

INITIALIZING: Final = "Initializing"
OK: Final = "EndpointOK"
NOT_READY: Final = "EndpointNotReady"
UNREACHABLE: Final = "EndpointConnectionError"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the endpoint answered: its HTTP status, or why there was none."""

    code: int = 0
    error: str = ""

    @property
    def is_success(self) -> bool:
        return 200 <= self.code < 300


class ReporterCore:
    """One reporter from its start to its end."""

    def __init__(self, settings: ReporterSettings) -> None:
        self._settings = settings
        #: status, reason, message as they should be
        self._wanted = ("False", INITIALIZING, "the reporter has started and has not checked yet")
        self._written: tuple[str, str, str] | None = None
        self._transition = ""
        self._written_ns = 0

    def checked(self, result: CheckResult) -> None:
        """Take in the result of a check."""
        endpoint = self._settings.endpoint
        if result.is_success:
            self._wanted = ("True", OK, f"{endpoint} answers {result.code}")
        elif result.code:
            self._wanted = ("False", NOT_READY, f"{endpoint} answers {result.code}")
        else:
            status = "Unknown" if self._settings.is_off_node else "False"
            self._wanted = (status, UNREACHABLE, f"{endpoint} cannot be reached: {result.error}")

    def seen(self, stored: NodeCondition | None) -> None:
        """What is stored, for who may read it: others (a reboot, a timeout) may have written meanwhile."""
        if stored is None:
            self._written = None
            return
        self._written = (stored.status, stored.reason, stored.message)
        self._transition = stored.last_transition_time or ""

    def to_write(self, now_ns: int) -> NodeCondition | None:
        """The condition to send; None if what is stored is right and fresh enough."""
        period = self._settings.heartbeat_ns
        is_stale = period > 0 and now_ns - self._written_ns >= period
        if self._wanted == self._written and not is_stale:
            return None
        status, reason, message = self._wanted
        now = rfc3339(now_ns)
        is_same_status = self._written is not None and self._written[0] == status
        return NodeCondition(
            type=self._settings.condition,
            status=status,
            reason=reason,
            message=message,
            last_heartbeat_time=now,
            last_transition_time=self._transition if is_same_status and self._transition else now,
        )

    def written(self, condition: NodeCondition, now_ns: int) -> None:
        """It was taken."""
        self._written = (condition.status, condition.reason, condition.message)
        self._transition = condition.last_transition_time or ""
        self._written_ns = now_ns

    @property
    def is_done(self) -> bool:
        """Whether all that was to be reported is: only a reporter that ends with its first success ever is."""
        is_told = self._written is not None and self._written[0] == "True"
        return self._settings.strategy == UNTIL_SUCCESS and is_told


def patch_of(condition: NodeCondition) -> dict[str, Any]:
    """The strategic merge patch that writes one condition and touches no other."""
    return {
        "status": {
            "conditions": [
                {
                    "type": condition.type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastHeartbeatTime": condition.last_heartbeat_time,
                    "lastTransitionTime": condition.last_transition_time,
                }
            ]
        }
    }
