"""The defaults' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from nodeward.api.defaults.defaulter import Defaults

OTHERS: Defaults = {}
