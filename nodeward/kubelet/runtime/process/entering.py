"""A command in a container that runs: a program of its own, which joins the container and becomes the command.

Arguments: the container's directory, the number of its process, `tty` or `plain`, and the command. File 3 is where a
failure is told; it closes when the command runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import termios

from nodeward.kubelet.runtime.process import becoming, cpuset_cgroups, kernel, notes, rootfs
from nodeward.kubelet.runtime.process.notes import PLAN, Plan

_FAILING = 3


def main(directory: str, pid: str, kind: str, *command: str) -> None:
    """Become the command, or say why not."""
    os.set_inheritable(_FAILING, False)
    os.closerange(_FAILING + 1, 1 << 16)
    try:
        os.setsid()
        if kind == "tty":
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        plan: Plan = notes.read(directory, PLAN)
        env = {**plan["env"], "TERM": "xterm"} if kind == "tty" else plan["env"]
        _join(plan, int(pid))
        becoming.become_user(plan)
        becoming.execute(list(command), env, plan["working_dir"])
    except becoming.StartFailure as failure:
        os.write(_FAILING, str(failure).encode())
    except OSError as error:
        os.write(_FAILING, json.dumps(str(error)).encode())


def _join(plan: Plan, pid: int) -> None:
    if plan.get("cgroup"):
        cpuset_cgroups.enter(plan["cgroup"])
    else:
        os.sched_setaffinity(0, os.sched_getaffinity(pid))
    if plan["way"] == rootfs.NONE or not plan["mounts"]:
        return
    spaces = [(kernel.CLONE_NEWNS, os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))]
    if plan["way"] == rootfs.AS_USER:
        user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        spaces.insert(0, (kernel.CLONE_NEWUSER, user))
    for kind, handle in spaces:
        kernel.setns(handle, kind)
