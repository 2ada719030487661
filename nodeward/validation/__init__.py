"""Which rules hold for which kind: `VALIDATORS[type(obj)]`.

The two halves are plain dicts in their own modules; a new kind is one line in one of them.
"""

from __future__ import annotations

from nodeward.validation.other_kinds import OTHERS
from nodeward.validation.pods_and_nodes import PODS_AND_NODES
from nodeward.validation.validator import NameRule, Validator, Validators

VALIDATORS: Validators = {**PODS_AND_NODES, **OTHERS}

__all__ = ["VALIDATORS", "NameRule", "Validator", "Validators"]
