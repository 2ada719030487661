"""What a plugin answers: a code, and reasons a person can read.

`UNSCHEDULABLE` may be helped by preempting pods, `UNRESOLVABLE` may not; `PENDING` waits for something outside;
`SKIP` means "nothing to do for this pod, do not ask again in this cycle".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Code(Enum):
    """The codes of Kubernetes' framework; the names are those its metrics use."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class Status:
    """One answer. Immutable; `plugin` is filled in by whoever asked."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """The pod cannot go there now, which is not an error."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def of(self, plugin: str) -> Status:
        return self if self.plugin else replace(self, plugin=plugin)


_REJECTED: Final = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})

SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Does not fit now; might after preempting."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Does not fit, and no preemption would help."""
    return Status(Code.UNRESOLVABLE, reasons)


def failed(*reasons: str) -> Status:
    """Something went wrong that is nobody's verdict on the pod."""
    return Status(Code.ERROR, reasons)
