"""The Kubernetes API over a store: HTTP, verbs, admission, authorization, watch."""
