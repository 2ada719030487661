"""Rules for the kinds of resource.k8s.io. Called through `registry.py`."""
