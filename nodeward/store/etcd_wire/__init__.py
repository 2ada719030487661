"""The wire to etcd: messages (`messages.py`), members to call (`members.py`), streams (`grpc_stream.py`)."""
