"""The CPU manager: which CPUs of a node belong to which container."""
