"""Patches in the three forms Kubernetes takes: JSON patch, merge patch, strategic merge patch.

All of it is pure: plain JSON trees come in, a new tree goes out that shares with the old one what did not change.
Neither the document nor the patch is ever written to.
"""
