"""The type of a defaulter: a function that fills in, in place, what the client left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeward.api.meta import KubeObject

#: What each half of the registry is: kind to the function that fills in its defaults.
Defaults = dict[type[KubeObject], Callable[[Any], None]]
