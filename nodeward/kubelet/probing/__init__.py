"""Asking whether something works: a command, an HTTP request, a connection, a gRPC health check.

The same code asks containers (probes, and hooks over HTTP) and the node itself (readiness gates, KEP-5233).
"""
