"""What runs containers: simulated, as local processes, or through a container runtime; one protocol for all."""
