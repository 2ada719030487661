"""The defaults' registry, first half: pods and nodes."""

from __future__ import annotations

from nodeward.api.defaults.defaulter import Defaults

PODS_AND_NODES: Defaults = {}
