"""Coroutines that are run at once, and become tasks only if they have to wait.

A step of a kubelet (mount volumes, start a container, run a hook) is one coroutine on every node. On a simulated node
it mostly has nothing to wait for, and thousands of them start in a second: a task for each would be most of the work.
`EagerTasks.start` runs a coroutine up to its first suspension, in the caller's own stack; if there is none, it is over
when `start` returns. The kubelet's pod and node managers call it.

What must stay true: no code that needs a task of its own (a timeout, a task group) runs before the first suspension;
a function that needs one is marked `@own_task`. A coroutine is never lost: it ends, or is closed by `stop`. One that
fails costs no other its turn, and not its caller either: the error is logged, unless it is a broken invariant.

Called by the kubelet.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, ParamSpec, TypeVar

from nodeward.base.invariant import InvariantBroken

LOG: Final = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class EagerTasks:
    """Coroutines of one owner. `on_error` takes an expected error (`expected`) that ended one of them."""

    def __init__(
        self, on_error: Callable[[Exception], None], expected: tuple[type[Exception], ...] = ()
    ) -> None:
        self._on_error = on_error
        self._expected = expected
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def __len__(self) -> int:
        """The coroutines that wait for something."""
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run up to the first suspension; the rest is a task."""
        if self._is_stopped:
            work.close()
            return
        try:
            awaited = work.send(None)
        except StopIteration:
            return
        except InvariantBroken:
            raise
        except Exception as error:
            self._failed(error)
            return
        task = asyncio.create_task(self._go_on(work, awaited))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never reaches the coroutine.
        task.add_done_callback(lambda _: work.close())

    async def _go_on(self, work: Coroutine[Any, Any, None], awaited: Any) -> None:
        try:
            await _Rest(work, awaited)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, self._expected):
            self._on_error(error)
        else:
            LOG.error("a step failed in an unexpected way", exc_info=error)

    async def stop(self) -> None:
        """Cancel what is under way; nothing is started any more."""
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Rest(Generator[Any, Any, None]):
    """The rest of a coroutine that was suspended outside of a task and waits for `awaited`."""

    def __init__(self, work: Coroutine[Any, Any, None], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited
        self._has_begun = False

    def __await__(self) -> Generator[Any, Any, None]:
        return self

    def send(self, value: Any) -> Any:
        if self._has_begun:
            return self._work.send(value)
        self._has_begun = True
        return self._awaited

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)


def own_task(
    function: Callable[_P, Coroutine[Any, Any, _T]],
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Mark a coroutine function that must run inside a task of its own, because it uses timeouts."""

    @functools.wraps(function)
    async def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.create_task(function(*args, **kwargs))

    return run
