"""The verbs of the API, one file each. Called by `app.py`; writes use `writing.py`, reads the watch caches."""
