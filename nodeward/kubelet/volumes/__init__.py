"""Volumes of pods on a node with real containers: where each lies, what is in it, and what a container sees of it."""
