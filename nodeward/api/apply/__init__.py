"""Server-side apply: which manager owns which field, and how an applied configuration changes the live object.

Called by `apiserver/field_manager.py`. Pure: takes plain JSON trees, the compiled schema and managed-fields entries;
returns new ones.
"""
