"""Rules for the kinds of apps/v1. Called through `registry.py`."""
