"""Rules for pods and pod templates: spec, volumes, resources, status, changes. Called through `registry.py`."""
