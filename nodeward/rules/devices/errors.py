"""Why devices cannot be allocated, when the reason is more than that none are left."""

from __future__ import annotations

from nodeward.base.errors import NodewardError


class AllocationError(NodewardError):
    """The claims cannot be allocated; the message is the one Kubernetes gives.

    `is_for_one_node`: another node may still be tried; otherwise the attempt ends for the pod.
    """

    def __init__(self, message: str, *, is_for_one_node: bool = False) -> None:
        super().__init__(message)
        self.is_for_one_node = is_for_one_node


class SearchLimitReached(AllocationError):
    """The search was given up: it looked at as many devices as it was allowed to."""


class ExpressionError(NodewardError):
    """A CEL expression does not compile, or fails on a device; the message is the one Kubernetes gives."""
