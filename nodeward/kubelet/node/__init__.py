"""The node object and everything the agent decides about it: registration, status, lease, gates, admission of pods.

Pure: each part is given what is known and the time, and says what to write or to refuse; the agent around it talks to
the API server.
"""
