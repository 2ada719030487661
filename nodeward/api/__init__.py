"""Kubernetes objects: types, codec, defaults, validation, patches, OpenAPI."""
