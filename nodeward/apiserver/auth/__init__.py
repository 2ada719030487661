"""Authentication, impersonation, RBAC, the node authorizer, access reviews and service-account tokens.

Pure: each function is given what it needs (headers, certificates, objects, the time) and returns at once. `security.py`
feeds them from the watch caches and turns their results into HTTP answers.
"""
