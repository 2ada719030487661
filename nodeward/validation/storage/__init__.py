"""Rules for the kinds of storage.k8s.io. Called through `registry.py`."""
