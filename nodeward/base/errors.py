"""The three families of errors, by whose fault it is.

* the caller's: `nodeward.api.errors.ApiError`, answered with a Kubernetes `Status`; never retried as it stands
* the world's: `WorldError`, something outside failed (disk, network, another process); worth a retry
* ours: `nodeward.base.invariant.InvariantBroken`, a bug; that component stops

`ConfigError` is the caller's too, but speaks of a file or a flag rather than a request.

Used by every component.
"""

from __future__ import annotations


class NodewardError(Exception):
    """Whatever this project raises on purpose."""


class WorldError(NodewardError):
    """Something outside this process failed; the same call may succeed later."""


class ConfigError(NodewardError):
    """A flag, file or environment value is wrong; the message says where and what would be right."""
