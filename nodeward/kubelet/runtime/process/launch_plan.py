"""From what the node agent asks to what a supervisor does: command, environment, mounts, user, signals.

Pure, but for the node's account database, asked for a home directory. Raises `Unfit` for what no process can be given.
"""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.kubelet.runtime.process.notes import Plan
from nodeward.kubelet.runtime.process.rootfs import NONE
from nodeward.kubelet.runtime.process.tree import MARK
from nodeward.kubelet.runtime.resources import usable_cpuset

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USUAL_TERMINATION_LOG: Final = "/dev/termination-log"
#: Where a container that cannot have mounts finds its volumes.
MOUNTS_VARIABLE: Final = "NODEWARD_MOUNTS"
#: What runs when nobody said what: it waits for the end.
IDLE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM INT QUIT; while :; do sleep 86400 & wait $!; done")


class Unfit(Exception):
    """The request cannot be carried out. Given the reason users know and what is wrong."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def plan_of(
    request: ContainerRequest, container_id: str, way: str, present: CPUSet, cgroups: str = ""
) -> Plan:
    """How to run it, with mounts of its own in the way this machine allows.

    present: the CPUs of the machine. cgroups: the cgroup below which containers get theirs; "": they get none.
    """
    container = request.container
    user, group = _user(request)
    mounts = [(each.source, each.target, each.is_read_only, list(each.options)) for each in request.mounts]
    if request.termination_log:
        target = container.termination_message_path or USUAL_TERMINATION_LOG
        mounts.append((request.termination_log, target, False, []))
    plan = Plan(
        id=container_id,
        name=container.name,
        attempt=request.attempt,
        image=container.image,
        argv=list((*request.command, *request.args) or IDLE),
        env=_environment(request, container_id, user, [] if way != NONE else mounts),
        working_dir=container.working_dir,
        mounts=mounts,
        way=way,
        cpus=_cpus(request.cpuset, present),
        cgroup=f"{cgroups}/{container_id}" if cgroups else "",
        user=user,
        group=group,
        stop_signal=_stop_signal(request),
        log=request.log_path,
        termination_log=request.termination_log,
        termination_policy=container.termination_message_policy,
    )
    for text in (*plan["argv"], *plan["env"], *plan["env"].values()):
        if "\0" in text:
            raise Unfit("CreateContainerError", "the command and the environment cannot hold a NUL character")
    return plan


def _environment(
    request: ContainerRequest,
    container_id: str,
    user: int | None,
    unseen: Sequence[tuple[str, str, bool, list[str]]],
) -> dict[str, str]:
    """What an image would set, what the pod says, and the mark. Nothing of the agent's own environment."""
    env = {"PATH": USUAL_PATH, "HOSTNAME": request.pod.spec.hostname or request.pod.metadata.name}
    env["HOME"] = _home(os.getuid() if user is None else user)
    if request.container.tty:
        env["TERM"] = "xterm"
    if unseen:
        env[MOUNTS_VARIABLE] = "\n".join(f"{target}={source}" for source, target, *_ in unseen)
    env.update(request.env)
    env[MARK] = container_id
    return env


def _home(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_dir or "/"
    except KeyError:
        return "/"


def _user(request: ContainerRequest) -> tuple[int | None, int | None]:
    """Who it runs as, if that is not the agent's user; only root can choose."""
    if os.getuid():
        return None, None
    user = group = None
    for context in (request.pod.spec.security_context, request.container.security_context):
        if context is not None:
            user = context.run_as_user if context.run_as_user is not None else user
            group = context.run_as_group if context.run_as_group is not None else group
    if user and group is None:
        try:
            group = pwd.getpwuid(user).pw_gid
        except KeyError:
            group = 0
    return user, group


def _cpus(text: str, present: CPUSet) -> list[int]:
    try:
        return list(CPUSet.parse(usable_cpuset(text, present)))
    except CPUSetError as error:
        raise Unfit("CreateContainerError", f"cpuset {text!r}: {error}") from None


def _stop_signal(request: ContainerRequest) -> int:
    lifecycle = request.container.lifecycle
    name = lifecycle.stop_signal if lifecycle is not None else None
    return _SIGNALS.get(name or "", signal.SIGTERM)


_SIGNALS: Final[Mapping[str, int]] = {each.name: each.value for each in signal.Signals}
