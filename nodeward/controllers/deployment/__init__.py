"""Deployments: a template rolled out over replica sets, step by step, and back again if need be.

`controller` looks and writes; what it does is decided by `arithmetic` (how many where), `revisions` (which replica set
is which, and what it remembers), and `progress` (what the status says).
"""
