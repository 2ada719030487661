"""Pure questions about objects: does this select that, does this tolerate that. No I/O, no state."""
