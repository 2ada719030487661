"""Stateful sets: pods with names, places and storage of their own, made and replaced in order.

`controller` looks and writes; `plan` says what comes next, `status` what to tell; `identity` is what makes a pod the
one it is, `retention` who owns its claims; `writes` makes and deletes.
"""
