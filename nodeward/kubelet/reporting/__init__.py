"""The reporter side-car of KEP-5233: one condition of one node, kept true to what a health endpoint says.

For agents that are no kubelet and should need no more rights than to patch `nodes/status`.
"""
