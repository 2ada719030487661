"""Turning a forked process into a container's command: its mounts, CPUs, user, directory, signals, and then itself.

Runs between fork and exec, in a process with one thread. What fails is told as a `StartFailure`, with the reason users
know; the caller, who must not return into the program it was forked from, passes it on and ends.
Imported by the supervisors, of which there is one a container: nothing heavy here.
"""

from __future__ import annotations

import os
import signal
from typing import Final, NoReturn

from nodeward.kubelet.runtime.process import cpuset_cgroups, rootfs
from nodeward.kubelet.runtime.process.notes import ROOT, Plan

CREATE: Final = "CreateContainerError"
RUN: Final = "RunContainerError"


class StartFailure(Exception):
    """It cannot run. Given the reason and what there is to say."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def prepare(plan: Plan, directory: str) -> None:
    """Everything up to the command itself."""
    try:
        if plan.get("cgroup"):
            cpuset_cgroups.enter(plan["cgroup"])
        elif plan["cpus"]:
            os.sched_setaffinity(0, plan["cpus"])
    except OSError as error:
        raise StartFailure(CREATE, f"cpuset {plan['cpus']}: {error.strerror}") from None
    if plan["way"] != rootfs.NONE and plan["mounts"]:
        for source, target, *_ in plan["mounts"]:
            if not os.path.exists(source):
                raise StartFailure(CREATE, f'mount of "{source}" at "{target}": no such file or directory')
        try:
            rootfs.own_mounts(plan["way"])
            rootfs.build(f"{directory}/{ROOT}", plan["mounts"])
        except OSError as error:
            raise StartFailure(CREATE, f"mounts: {error.filename or ''}: {error.strerror}") from None
    become_user(plan)


def become_user(plan: Plan) -> None:
    """Give up the agent's user for the container's."""
    try:
        if plan["group"] is not None:
            os.setgroups([])
            os.setgid(plan["group"])
        if plan["user"] is not None:
            os.setuid(plan["user"])
    except OSError as error:
        raise StartFailure(CREATE, f"user {plan['user']}, group {plan['group']}: {error.strerror}") from None


def execute(argv: list[str], env: dict[str, str], working_dir: str) -> NoReturn:
    """Become the command. Everything but the three standard files must close by itself."""
    try:
        os.chdir(working_dir or "/")
    except OSError as error:
        raise StartFailure(RUN, f'chdir to cwd ("{working_dir}") failed: {_said(error)}') from None
    path = _found(argv[0], env.get("PATH", ""))
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except OSError:
                continue  # some belong to the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execve(path, argv, env)
    except OSError as error:
        raise StartFailure(RUN, f'exec: "{argv[0]}": {_said(error)}') from None


def _found(command: str, path: str) -> str:
    """Where the command is, in the container's file system."""
    if "/" in command:
        if not os.path.exists(command):
            raise StartFailure(RUN, f'exec: "{command}": stat {command}: no such file or directory')
        if os.path.isdir(command) or not os.access(command, os.X_OK):
            raise StartFailure(RUN, f'exec: "{command}": permission denied')
        return command
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{command}"
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise StartFailure(RUN, f'exec: "{command}": executable file not found in $PATH')


def _said(error: OSError) -> str:
    return (error.strerror or "failed").lower()
