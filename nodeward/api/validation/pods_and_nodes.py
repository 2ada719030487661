"""The rules' registry, first half: pods and nodes."""

from __future__ import annotations

from nodeward.api.validation.validator import Validators

PODS_AND_NODES: Validators = {}
