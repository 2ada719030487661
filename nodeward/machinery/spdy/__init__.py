"""SPDY/3.1, as far as Kubernetes' clients and kubelets use it: several streams of bytes in one connection.

kubectl forwards ports with it, inside a WebSocket; kubelets without KEP-4006 know nothing else for commands.
"""
