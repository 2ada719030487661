"""Programs as users write them, one for each Python client. Each is run by itself, with KUBECONFIG set."""
