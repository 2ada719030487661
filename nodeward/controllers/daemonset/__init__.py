"""Daemon sets: one pod of a template on every node that should have one.

`controller` looks and writes; `placement` says which nodes, `plan` what to make and delete next, `status` what to tell.
"""
