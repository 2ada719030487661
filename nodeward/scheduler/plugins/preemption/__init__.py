"""Making room: whose going would let a pod in, where that hurts least, and how those who go are told."""
