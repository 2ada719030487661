"""Devices of ResourceSlices: which exist on a node, which are in use, and which ones claims get (DRA, KEP-5945)."""
