"""The rules of the repository, as tests: layers, bans, sizes, docs in step with code. Nothing but pytest is needed."""
