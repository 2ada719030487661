"""How the garbage collector of a long-running process is set: most objects live long, so it runs rarely.

Called once a process has started, by the commands that run until they are stopped, and by benchmarks of what they run.
"""

from __future__ import annotations

import gc


def settle_garbage_collector() -> None:
    """Leave the objects that exist now out of collections, and make collections rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
