"""Defaults: `DEFAULTS[type(obj)](obj)` fills in, in place, what a client left out. Called by the strategies.

Defaulting twice is the same as once. Kinds without defaults have no entry. The two halves are plain dicts in their own
modules; a new kind is one line in one of them.
"""

from __future__ import annotations

from nodeward.api.defaults.defaulter import Defaults
from nodeward.api.defaults.other_kinds import OTHERS
from nodeward.api.defaults.pods_and_nodes import PODS_AND_NODES

DEFAULTS: Defaults = {**PODS_AND_NODES, **OTHERS}

__all__ = ["DEFAULTS", "Defaults"]
