"""The ground: quantities, cpusets, durations, field paths, errors. No Kubernetes objects, no I/O."""
