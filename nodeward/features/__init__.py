"""Feature gates: what is on in which version of Kubernetes, as a value that is passed around."""

from nodeward.features.catalogue import CATALOGUE, NEWEST, OLDEST, Gate, Spec, Stage
from nodeward.features.gates import Gates, describe, parse

__all__ = ["CATALOGUE", "NEWEST", "OLDEST", "Gate", "Gates", "Spec", "Stage", "describe", "parse"]
