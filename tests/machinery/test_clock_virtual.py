"""Virtual time jumps exactly, in order, never while held, and never hangs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.clock import VIRTUAL_START_NS, VirtualClock
from nodeward.machinery.virtual_loop import Deadlock, TimeLimitReached, run_virtual, virtual_clock

HOUR_NS = 3600 * SECOND_NS


def test_time_moves_exactly_as_far_as_was_slept() -> None:
    async def program(clock: VirtualClock) -> int:
        for _ in range(36000):
            await clock.sleep(0.1)
        return clock.now_ns()

    assert run_virtual(program) == VIRTUAL_START_NS + HOUR_NS


def test_time_stands_still_while_somebody_works() -> None:
    async def program(clock: VirtualClock) -> None:
        clock.call_later(0.000001, lambda: None)
        before = clock.now_ns()
        for _ in range(1000):
            await clock.yield_now()
        assert clock.now_ns() == before

    run_virtual(program)


def test_a_coroutine_finds_its_clock_and_starts_where_told() -> None:
    async def program() -> int:
        return virtual_clock().now_ns()

    assert run_virtual(program(), start_ns=42) == 42


def test_timers_for_the_same_instant_fire_in_the_order_they_were_set() -> None:
    async def program(clock: VirtualClock) -> list[int]:
        seen: list[int] = []
        for number in range(500):
            clock.call_later(1 + number % 3, lambda number=number: seen.append(number))  # type: ignore[misc]
        await clock.sleep(10)
        return seen

    assert run_virtual(program) == sorted(range(500), key=lambda number: number % 3)


def test_other_peoples_sleeps_and_timeouts_follow_virtual_time() -> None:
    async def program(clock: VirtualClock) -> int:
        await asyncio.sleep(3600)  # noqa: TID251 - as a library would
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3600)
        return clock.elapsed_ns

    assert run_virtual(program) == 2 * HOUR_NS


def test_cancelled_timers_cost_no_time_and_no_memory() -> None:
    async def program(clock: VirtualClock) -> tuple[int, int]:
        for _ in range(10_000):
            clock.call_later(HOUR_NS, lambda: None).cancel()
        await clock.sleep(1)
        loop = asyncio.get_running_loop()
        return clock.elapsed_ns, len(loop._timers)  # type: ignore[attr-defined]

    elapsed, left = run_virtual(program)
    assert elapsed == SECOND_NS
    assert left < 300


def test_time_does_not_jump_while_a_thread_works() -> None:
    async def program(clock: VirtualClock) -> int:
        gate = threading.Event()
        clock.call_later(5, gate.set)
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(done.set))
        async with clock.timeout(1):
            with clock.hold("a thread"):
                thread.start()
                await done.wait()
        thread.join()
        assert not gate.is_set()
        return clock.elapsed_ns

    assert run_virtual(program) == 0


def test_executor_threads_hold_the_clock_by_themselves() -> None:
    async def program(clock: VirtualClock) -> int:
        for _ in range(50):
            async with clock.timeout(0.001):
                await asyncio.to_thread(sum, range(1000))
        return clock.elapsed_ns

    assert run_virtual(program) == 0


def test_sockets_of_this_machine_work_under_virtual_timeouts() -> None:
    async def program(clock: VirtualClock) -> int:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for number in range(200):
            writer.write(b"%d\n" % number)
            async with clock.timeout(5):
                assert await reader.readline() == b"%d\n" % number
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        await clock.sleep(1)
        return clock.elapsed_ns

    assert run_virtual(program) == SECOND_NS


def test_a_program_that_can_never_go_on_says_who_waits_where() -> None:
    async def program() -> None:
        await asyncio.gather(asyncio.create_task(asyncio.Event().wait(), name="the-lonely-one"))

    with pytest.raises(Deadlock, match=r"everybody waits(.|\n)*the-lonely-one waits at .*locks\.py"):
        run_virtual(program())


def test_a_hold_that_nobody_ends_is_named() -> None:
    async def program(clock: VirtualClock) -> None:
        with clock.hold("the missing thread"):
            await clock.sleep(1)

    with pytest.raises(Deadlock, match="held: the missing thread"):
        run_virtual(program, patience=0.01)


def test_a_listening_socket_alone_does_not_hang_the_program() -> None:
    async def program() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        async with server:
            await server.serve_forever()

    with pytest.raises(Deadlock, match=r"nothing happened for 0\.01 real seconds"):
        run_virtual(program(), patience=0.01)


def test_a_program_without_end_is_stopped_at_the_limit() -> None:
    async def program(clock: VirtualClock) -> None:
        while True:
            await clock.sleep(10)

    with pytest.raises(TimeLimitReached, match="virtual time is up after 100 s"):
        run_virtual(program, limit=100)


def test_what_is_left_running_is_cancelled_oldest_first_and_may_take_its_time() -> None:
    ended: list[tuple[str, int]] = []

    async def program(clock: VirtualClock) -> None:
        async def worker(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await clock.sleep(1)
                ended.append((name, clock.elapsed_ns))

        tasks = [asyncio.create_task(worker(f"w{number}")) for number in range(20)]
        await clock.yield_now()
        assert len(tasks) == 20

    run_virtual(program)
    assert ended == [(f"w{number}", SECOND_NS) for number in range(20)]


def test_the_programs_own_error_comes_out() -> None:
    async def program() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run_virtual(program())


def test_a_virtual_clock_refuses_to_be_waited_for_on_another_loop() -> None:
    with pytest.raises(InvariantBroken, match="on its own loop"):
        asyncio.run(VirtualClock().sleep(1))


def test_code_on_a_real_loop_has_no_virtual_clock() -> None:
    async def program() -> VirtualClock:
        return virtual_clock()

    with pytest.raises(InvariantBroken, match="virtual loop"):
        asyncio.run(program())


_TRACE = """
import asyncio
from nodeward.machinery.clock import SeededChance
from nodeward.machinery.virtual_loop import run_virtual

async def program(clock):
    chance = SeededChance(7)
    trace = []
    async def worker(number):
        mine = chance.child(str(number))
        try:
            for _ in range(20):
                await clock.sleep(mine.randrange(4) / 2)
                trace.append(f"{clock.elapsed_ns}:{number}:{mine.name_suffix()}:{mine.uuid()}")
            if number == 13:
                raise LookupError
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            trace.append(f"cancelled {asyncio.current_task().get_name()}")
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(worker(number))
    except ExceptionGroup:
        trace.append("group failed")
    done, pending = await asyncio.wait([asyncio.create_task(worker(n)) for n in range(5)], timeout=3)
    trace.extend(task.get_name() for task in pending)
    return trace

print("\\n".join(run_virtual(program)))
"""


def test_every_run_takes_the_same_steps_whatever_the_hash_seed() -> None:
    traces = [
        subprocess.run(
            [sys.executable, "-c", _TRACE],
            env={**os.environ, "PYTHONHASHSEED": seed, "PADDING": "x" * 1000 * int(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(traces[0].splitlines()) > 800
    assert traces[0] == traces[1] == traces[2]
