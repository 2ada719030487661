"""The Common Expression Language in Kubernetes' dialect: compile once, evaluate often, at a bounded cost.

`nodeward.cel.program` is the public face (`compile_expression`, `Program`), `nodeward.cel.device` the environment of
DRA device selectors. A text becomes tokens, a syntax tree, a checked tree, an estimate of its worst cost and closures.
Nothing here does I/O, reads a clock or depends on chance; texts of errors and costs are those of cel-go 0.29 with the
libraries of Kubernetes 1.37.
"""
