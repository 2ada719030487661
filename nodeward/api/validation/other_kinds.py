"""The rules' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from nodeward.api.validation.validator import Validators

OTHERS: Validators = {}
