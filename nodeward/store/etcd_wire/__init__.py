"""What goes over the wire to etcd: messages (`messages.py`), members to call (`members.py`), streams (`tap.py`)."""
