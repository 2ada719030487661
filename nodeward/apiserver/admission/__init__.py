"""Admission plugins, one file each: they may change or refuse a write after authorization and before storage."""
