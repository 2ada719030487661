"""Admission: what may change or refuse a write after authorization and before storage. One file per plugin."""
