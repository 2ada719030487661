"""Kubernetes' protobuf form of objects, read only: Go clients send it, and everybody accepts JSON in answer."""
