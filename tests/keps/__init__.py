"""One test per statement of a KEP, and the count of them (`python -m tests.keps`)."""
