"""Which pod runs where: Kubernetes' scheduling framework over columns of nodes."""
