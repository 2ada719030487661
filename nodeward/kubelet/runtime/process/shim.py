"""The supervisor of one container: starts the command, writes its log, waits for its end, notes how it ended.

A process of its own, given the container's directory (`nursery` makes it). It leaves its parent at once and lives on
its own, so the agent may come and go. Its first answer, on its standard output, is what it noted: `started`
or `exited`. SIGTERM passes the stop signal on to the command; SIGUSR1 kills everything the container has.

A container whose directory is removed belongs to nobody, and is ended.

What must stay true: when the command ends, nothing that it started lives on; the exit code is noted after that, and
after the last line of its output; then the supervisor ends, which is how a living agent hears of it.
The time in logs and notes is the machine's: this process is part of the real world, as a container runtime would be.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Final, NoReturn

from nodeward.kubelet.runtime.process import becoming, cpuset_cgroups, kernel, notes, tree
from nodeward.kubelet.runtime.process.log_lines import LogFile, Stream
from nodeward.kubelet.runtime.process.notes import EXITED, PLAN, STARTED, Exited, Plan, Started

#: How long output that somebody outside keeps open is waited for, when the command has ended.
_LAST_WORDS_MS: Final = 1000
_CHUNK: Final = 64 * 1024
#: How often it is looked whether the container's directory is still there.
_LOOK_MS: Final = 5000


def main(directory: str) -> None:
    """Run the container whose plan is in a directory, until it ends."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.closerange(3, 1 << 16)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    plan: Plan | None = None
    with suppress(FileNotFoundError):
        if notes.lock(directory) is not None:
            plan = notes.read(directory, PLAN)
    if plan is not None:  # else an agent that came back found it before it lived, and gave it up
        kernel.adopt_orphans()
        _Shim(directory, plan).run()


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


class _Shim:
    def __init__(self, directory: str, plan: Plan) -> None:
        self._directory = directory
        self._plan = plan
        self._streams: dict[int, Stream] = {}
        self._main = 0
        self._status: int | None = None
        self._ended_ns = 0
        self._wakes, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
            # The handler does nothing: the number arrives in the pipe.
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> None:
        try:
            self._start()
        except becoming.StartFailure as failure:
            self._finish(Exited(code=128, at_ns=_now_ns(), reason=failure.reason, message=str(failure)))
            return
        except OSError as error:
            told = f"{error.filename or 'starting'}: {error.strerror}"
            self._finish(Exited(code=128, at_ns=_now_ns(), reason=becoming.CREATE, message=told))
            return
        looked_ns = _now_ns()
        while self._status is None:
            self._wait(_LOOK_MS)
            if _now_ns() - looked_ns >= _LOOK_MS * 10**6:
                looked_ns = _now_ns()
                if self._is_nobodys():
                    self._end_it()
        self._kill_all()
        while self._streams and self._wait(_LAST_WORDS_MS):
            pass
        for stream in self._streams.values():
            stream.end(_now_ns())
        code = os.waitstatus_to_exitcode(self._status)
        self._finish(
            Exited(code=code if code >= 0 else 128 - code, at_ns=self._ended_ns, reason="", message="")
        )

    def _finish(self, exited: Exited) -> None:
        if self._plan.get("cgroup"):
            cpuset_cgroups.leave(self._plan["cgroup"])
        # A directory that was removed meanwhile needs no note.
        with suppress(FileNotFoundError):
            notes.write(self._directory, EXITED, exited)
        _answer(EXITED, exited)

    # -- the beginning

    def _start(self) -> None:
        outputs = self._outputs()
        failed, failing = os.pipe2(os.O_CLOEXEC)
        self._main = os.fork()
        if not self._main:
            self._become(outputs, failing)
        os.close(failing)
        for handle in outputs:
            os.close(handle)
        with open(failed, "rb") as told:
            failure = told.read()
        if failure:
            reason, message = json.loads(failure)
            os.waitpid(self._main, 0)
            raise becoming.StartFailure(reason, message)
        me = os.getpid()
        started = Started(
            pid=self._main, shim=me, shim_ticks=tree.start_ticks(me), boot=tree.boot_id(), at_ns=_now_ns()
        )
        notes.write(self._directory, STARTED, started)
        _answer(STARTED, started)

    def _outputs(self) -> tuple[int, ...]:
        """The ends the command writes to."""
        if not self._plan["log"]:
            handle = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            return (handle, os.dup(handle))
        file = LogFile(self._plan["log"])
        ends = []
        for name in ("stdout", "stderr"):
            reading, writing = os.pipe2(os.O_CLOEXEC)
            self._streams[reading] = Stream(name, file)
            ends.append(writing)
        return tuple(ends)

    def _become(self, outputs: tuple[int, ...], failing: int) -> NoReturn:
        """In the child: the command, or the reason why not."""
        try:
            os.setsid()
            kernel.die_with_parent(signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, handle in enumerate(outputs, 1):
                os.dup2(handle, number)
            becoming.prepare(self._plan, self._directory)
            # A change of user forgets it.
            kernel.die_with_parent(signal.SIGKILL)
            becoming.execute(self._plan["argv"], self._plan["env"], self._plan["working_dir"])
        except becoming.StartFailure as failure:
            os.write(failing, json.dumps([failure.reason, str(failure)]).encode())
        finally:
            error = sys.exc_info()[1]
            if error is not None:
                os.write(failing, json.dumps([becoming.CREATE, str(error)]).encode())
            os._exit(127)

    # -- while it runs

    def _wait(self, milliseconds: int) -> bool:
        """Until something happens, and deal with it; False if nothing did."""
        poller = select.poll()
        for handle in (self._wakes, *self._streams):
            poller.register(handle, select.POLLIN)
        happened = poller.poll(milliseconds)
        for handle, _ in happened:
            if handle == self._wakes:
                for number in os.read(handle, 4096):
                    self._signalled(number)
            else:
                self._read(handle)
        return bool(happened)

    def _read(self, handle: int) -> None:
        data = os.read(handle, _CHUNK)
        if data:
            self._streams[handle].feed(data, _now_ns())
        else:
            self._streams.pop(handle).end(_now_ns())
            os.close(handle)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif self._status is None:
            if number == signal.SIGTERM:
                os.kill(self._main, self._plan["stop_signal"])
            elif number == signal.SIGUSR1:
                self._end_it()

    def _end_it(self) -> None:
        tree.kill_all([*tree.descendants(os.getpid()), *tree.marked(self._plan["id"])])

    def _is_nobodys(self) -> bool:
        """Its directory was removed: no agent will ever find it again."""
        try:
            os.stat(f"{self._directory}/{PLAN}")
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return False

    def _reap(self, flags: int = os.WNOHANG) -> bool:
        """Everybody who died, ours or orphaned; False when nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self._main:
                self._status, self._ended_ns = status, _now_ns()
            if not flags:
                return True

    def _kill_all(self) -> None:
        """Everything that is left of the container. Orphans come to us, so this ends when nobody is below."""
        tree.kill_all(tree.marked(self._plan["id"]))
        while below := tree.descendants(os.getpid()):
            tree.kill_all(below)
            if not self._reap(0):
                return


def _answer(kind: str, value: Started | Exited) -> None:
    """Tell whoever started us, once; he may be gone."""
    with suppress(OSError):
        os.write(1, json.dumps([kind, value]).encode())
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nowhere, 1)
    os.close(nowhere)
