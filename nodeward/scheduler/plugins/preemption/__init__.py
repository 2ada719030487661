"""Preemption: which victims would let a pod in, on which node that is best, and how the victims are evicted."""
