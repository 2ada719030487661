"""Kubernetes' protobuf form of objects, read only: Go clients send it, and all accept JSON answers."""
