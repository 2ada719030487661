"""Rules for the kinds of batch/v1. Called through `registry.py`."""
