"""Nodeward: a Kubernetes control plane and node agent that can rehearse a rollout in virtual time."""

__version__ = "0.1.0"
