"""For authors of DRA drivers: `Driver` (`driver.py`) registers with a kubelet, publishes devices and serves both calls.

A driver made with it works with Nodeward's kubelet and with a real one. A driver without a node part needs
`SlicePublisher` only (KEP-5945). docs/dra.md walks through both.
"""
