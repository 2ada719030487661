"""SIGKILL in the middle of work, seen from the API."""
