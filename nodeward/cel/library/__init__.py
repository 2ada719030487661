"""Functions that expressions may call, one module per library of cel-go and Kubernetes.

Each module gives a tuple of `Function`; `nodeward.cel.kubernetes` puts them together.
"""
