"""Who is asking, and may they: authentication, impersonation, RBAC, the node authorizer, reviews.

Pure cores: each is handed what it needs (headers, certificates, objects, the time) and answers at once. The API
server feeds them from its watch cache and turns their answers into HTTP.
"""
