"""Which quality of service a pod gets. The rule itself lives with validation, which must refuse changes of it."""

from __future__ import annotations

from nodeward.api.validation.pod_qos import compute_qos as qos_class

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

__all__ = ["BEST_EFFORT", "BURSTABLE", "GUARANTEED", "qos_class"]
