"""The core group, v1, by subject."""
