"""Large request bodies: how much they may hold, and a thread in which the work on them does not stop everybody else.

One event loop answers all requests. What a body of a few kilobytes costs is of no matter; decoding, merging and
validating one of megabytes takes seconds. Such steps run in the one thread of a `BodyThread`, one after the other,
while the loop goes on; admission and the store stay on the loop. In virtual time there is no thread (`OnLoop`): all
work is done where it is asked for.

What must stay true: a step that is run here touches nothing but its arguments, its answer is the same in both worlds,
and before it is run the values of a body have been counted.

Called by `app.py`, the verbs and `writing.py`; given by whoever makes the server.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import msgspec

from nodeward.api.codec import parse_tree
from nodeward.api.errors import request_entity_too_large

P = ParamSpec("P")
T = TypeVar("T")

#: From this size on a body, or the object it changes, is large.
LARGE_BYTES: Final = 32 << 10
#: Most values (strings, numbers, lists, objects, ...) in a body.
MOST_VALUES: Final = 100_000


class BodyWorker(Protocol):
    """Where steps on bodies are run."""

    async def run(self, size: int, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a step on `size` bytes and return what it returns."""
        ...

    def close(self) -> None: ...


class OnLoop:
    """Runs every step at once."""

    async def run(self, size: int, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return step(*args, **kwargs)

    def close(self) -> None:
        """There is nothing to close."""


class BodyThread:
    """Runs steps on large bodies in a thread of its own."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")

    async def run(self, size: int, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if size < LARGE_BYTES:
            return step(*args, **kwargs)
        work = functools.partial(step, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def check_values(body: bytes) -> None:
    """Refuse (413) a JSON body of more values than anybody needs; a body that is not JSON is somebody else's matter."""
    # Every value but the first follows a comma, a colon or a bracket; strings may hold those too, so look closer then.
    if sum(body.count(mark) for mark in (b",", b":", b"[")) < MOST_VALUES:
        return
    try:
        tree = parse_tree(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if _values(tree) > MOST_VALUES:
        raise request_entity_too_large(f"the body holds more than {MOST_VALUES:,} values")


def _values(tree: Any) -> int:
    count = 0
    left = [tree]
    while left and count <= MOST_VALUES:
        found = left.pop()
        count += 1
        if isinstance(found, dict):
            left.extend(found.values())
        elif isinstance(found, list):
            left.extend(found)
    return count + len(left)
