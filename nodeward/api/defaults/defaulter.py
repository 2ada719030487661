"""The promise a kind with defaults makes: a function that fills in, in place, what the caller left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeward.api.meta import KubeObject

#: What each half of the registry is: kind to the function that fills in its defaults.
Defaults = dict[type[KubeObject], Callable[[Any], None]]
