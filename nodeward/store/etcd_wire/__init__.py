"""What goes over the wire to etcd: its messages (`messages.py`) and how its members are called (`members.py`)."""
