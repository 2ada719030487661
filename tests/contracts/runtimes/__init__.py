"""What every container runtime promises (`nodeward.kubelet.runtime.interface`), tried on each of them.

To put another runtime through it: write a `Ground` (`ground.py`) and add it to `GROUNDS` (`grounds.py`).
"""
