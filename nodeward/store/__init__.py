"""Bytes and revisions: one interface, three stores (memory, sqlite, etcd)."""
