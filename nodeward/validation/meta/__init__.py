"""Rules that hold for every kind: metadata, names, labels, conditions. Called through `registry.py`."""
