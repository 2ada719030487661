"""Whole clusters from one description: live for `nodeward up`, in virtual time for tests and rehearsals."""
