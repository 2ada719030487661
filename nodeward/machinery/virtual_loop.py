"""An event loop on which time is virtual: when everybody waits, it jumps to the next timer.

In goes a coroutine, out comes its result, and hours of waiting have passed in milliseconds. Whatever asks the loop
for time follows along, third-party code included. Real sockets on this machine still work: they are polled before
every jump.

What must stay true:
* the same program takes the same steps in the same order each time: timers due at the same instant fire in the
  order they were set, and tasks hash by their number, so that sets of tasks (`TaskGroup` keeps one) have an order
* time never jumps while the clock is held; work handed to executor threads holds it by itself
* a program that can never go on fails with a list of who waits where, instead of hanging
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple, cast

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.clock import VIRTUAL_START_NS, VirtualClock

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

#: Waiting longer than this (some three thousand years) is waiting for ever.
_FOR_EVER: Final = 1e11
#: Without sockets there is nothing to poll for but signals and stray threads; then every so many turns is enough.
_TURNS_BETWEEN_POLLS: Final = 64

#: Virtual seconds after which a program counts as endless.
DEFAULT_LIMIT: Final = 31 * 86400.0
#: Real seconds to wait for a thread or a socket before giving up on it.
DEFAULT_PATIENCE: Final = 30.0


class Deadlock(InvariantBroken):
    """Everybody waits, and nothing that could wake anybody is left."""


class TimeLimitReached(InvariantBroken):
    """More virtual time has passed than the program was allowed."""


class _Task(asyncio.Task[Any]):
    """A task with a number. The number is its hash, so that sets of tasks iterate alike in every run."""

    ordinal: int

    def __hash__(self) -> int:
        return self.ordinal


class VirtualLoop(asyncio.SelectorEventLoop):
    """A selector event loop moved by its `clock`. Use `run_virtual` rather than this."""

    # The parts of asyncio's loop this one builds on; typeshed does not list them.
    _ready: deque[asyncio.Handle]
    _selector: Any
    _stopping: bool
    _check_closed: Callable[[], None]
    _process_events: Callable[[object], None]

    def __init__(self, clock: VirtualClock, *, limit: float, patience: float) -> None:
        super().__init__()
        self.clock: Final = clock
        clock.attach(self)
        self._clock_resolution = 1e-9
        self._limit_ns = round(limit * SECOND_NS)
        self._patience = patience
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._timers_set = 0
        self._timers_cancelled = 0
        self._tasks_made = 0
        self._turn = 0
        self._registered = self._selector.get_map()
        #: The loop's own wake-up pipe.
        self._own_files = len(self._registered)
        self.set_task_factory(cast(Any, self._make_task))

    def time(self) -> float:
        return self.clock.elapsed_ns / SECOND_NS

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # Added as integers: sleeping a tenth of a second ten times is exactly a second.
        return self._set_timer(
            self.clock.elapsed_ns + round(min(delay, _FOR_EVER) * SECOND_NS), callback, args, context
        )

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._set_timer(round(min(when, _FOR_EVER) * SECOND_NS), callback, args, context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Ts], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        future = super().run_in_executor(executor, func, *args)
        hold = self.clock.hold("a thread of run_in_executor")
        hold.__enter__()
        future.add_done_callback(lambda _: hold.__exit__(None, None, None))
        return future

    async def shutdown_default_executor(self, *timeout: float | None) -> None:
        with self.clock.hold("shutting down the executor"):
            await super().shutdown_default_executor(*timeout)

    def cancel_all_tasks(self) -> None:
        """Cancel what still runs, oldest first, and wait for it to end."""
        tasks = sorted(asyncio.all_tasks(self), key=_ordinal)
        if not tasks:
            return
        # The clean-up may wait, too, even when the time is up.
        self._limit_ns += 3600 * SECOND_NS
        for task in tasks:
            task.cancel()
        self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for task in tasks:
            if not task.cancelled() and task.exception() is not None:
                self.call_exception_handler(
                    {"message": "error while cleaning up", "exception": task.exception(), "task": task}
                )

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, _T], **options: Any
    ) -> asyncio.Task[_T]:
        self._tasks_made += 1
        # The number must be there before the task is registered, which hashes it.
        task = _Task.__new__(_Task)
        task.ordinal = self._tasks_made
        options.setdefault("name", f"Task-{self._tasks_made}")
        task.__init__(coro, loop=loop, **options)  # type: ignore[misc]
        return task

    def _set_timer(
        self, due_ns: int, callback: Callable[..., object], args: tuple[object, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        self._check_closed()
        timer = asyncio.TimerHandle(due_ns / SECOND_NS, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        self._timers_set += 1
        heapq.heappush(self._timers, (due_ns, self._timers_set, timer))
        return timer

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Called by the timer itself. When most timers are cancelled ones (request timeouts, say), drop those."""
        if not timer._scheduled:  # type: ignore[attr-defined]
            return
        self._timers_cancelled += 1
        if self._timers_cancelled > 100 and self._timers_cancelled * 2 > len(self._timers):
            self._timers = [
                entry for entry in self._timers if not entry[2].cancelled() and entry[2] is not timer
            ]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    def _run_once(self) -> None:
        """Run one turn: find something to do, then do all that is ready now (not what that makes ready)."""
        ready = self._ready
        if ready or self._stopping:
            self._turn += 1
            if len(self._registered) > self._own_files or self._turn % _TURNS_BETWEEN_POLLS == 0:
                self._process_events(self._selector.select(0))
        else:
            self._wait()
        timers = self._timers
        now = self.clock.elapsed_ns
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._timers_cancelled -= 1
            else:
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()
        handle = None  # type: ignore[assignment]  # an exception must not keep it alive

    def _wait(self) -> None:
        """Wait for the outside if it is at work, else jump to the next timer; nothing is ready now."""
        self._turn += 1
        has_files = len(self._registered) > self._own_files
        if has_files or self._turn % _TURNS_BETWEEN_POLLS == 0:
            self._process_events(self._selector.select(0))
            if self._ready:
                return
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)[2]._scheduled = False  # type: ignore[attr-defined]
            self._timers_cancelled -= 1
        clock = self.clock
        if timers and timers[0][0] <= clock.elapsed_ns:
            return
        if clock.holds or (has_files and not timers):
            self._process_events(self._selector.select(self._patience))
            if not self._ready:
                raise Deadlock(self._describe(f"nothing happened for {self._patience:g} real seconds"))
        elif timers:
            if timers[0][0] > self._limit_ns:
                raise TimeLimitReached(
                    self._describe(f"virtual time is up after {self._limit_ns / SECOND_NS:g} s")
                )
            clock.elapsed_ns = timers[0][0]
        else:
            raise Deadlock(self._describe("everybody waits and no timer is set"))

    def _describe(self, what: str) -> str:
        lines = [what]
        lines.extend(f"  held: {hold.reason or 'no reason given'}" for hold in self.clock.holds)
        for task in sorted(asyncio.all_tasks(self), key=_ordinal):
            stack = task.get_stack(limit=1)
            place = f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "its start"
            lines.append(f"  {task.get_name()} waits at {place}")
        return "\n".join(lines)


def _ordinal(task: asyncio.Task[Any]) -> int:
    return hash(task)


def run_virtual(
    main: Coroutine[Any, Any, _T] | Callable[[VirtualClock], Coroutine[Any, Any, _T]],
    *,
    start_ns: int = VIRTUAL_START_NS,
    limit: float = DEFAULT_LIMIT,
    patience: float = DEFAULT_PATIENCE,
) -> _T:
    """Run `main` to its end in virtual time and return its result, like `asyncio.run`.

    `main` is a function given the clock, or a coroutine that asks `virtual_clock()` for it. `limit`: virtual
    seconds allowed. `patience`: real seconds to wait for a thread or socket that keeps time from moving.
    """
    clock = VirtualClock(start_ns)
    loop = VirtualLoop(clock, limit=limit, patience=patience)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            return runner.run(main if isinstance(main, Coroutine) else main(clock))
        finally:
            loop.cancel_all_tasks()


def virtual_clock() -> VirtualClock:
    """Return the clock of the virtual loop this code runs on."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise InvariantBroken("this code does not run on a virtual loop")
    return loop.clock
