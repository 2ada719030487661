"""What the library of declared features refuses: a wrong registration, name or version. The message says which.

Raised by the modules of this package.
"""

from __future__ import annotations

from nodeward.base.errors import NodewardError


class FeatureError(NodewardError, ValueError):
    """The caller's mistake; nothing was computed."""
