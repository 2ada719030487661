"""Server-side apply: who owns which field, and what an applied configuration does to the live object.

All of it is pure: plain JSON trees, the compiled schema and managed-fields entries come in; new ones go out.
"""
