"""The topology manager: on which NUMA nodes a pod's resources are placed together."""
