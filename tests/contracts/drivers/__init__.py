"""What every DRA driver on a node promises to the kubelet (`kubelet/dra/driver_plugin.py`), tried on each kind."""
