"""Rules for the other kinds of core/v1. Called through `registry.py`."""
