"""The Kubernetes API server: requests in, objects in a store, watch events out."""
