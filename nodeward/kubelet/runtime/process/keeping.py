"""The directories of pods and containers: made, found again after a restart, cleared away.

`ROOT/pods/UID/pod` says whose it is; every container has a directory beside it, called by its id (`notes`). All of
this blocks: call it in a thread.

What must stay true: what a supervisor noted is believed; where one is gone without a note its container has ended,
nobody knows how, and nothing of it is left running; a container that never ran leaves nothing.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from nodeward.kubelet.runtime.process import notes, tree
from nodeward.kubelet.runtime.process.notes import EXITED, PLAN, STARTED, Exited, Plan, Started

LOG: Final = logging.getLogger(__name__)
_POD: Final = "pod"
UNKNOWN: Final = "ContainerStatusUnknown"
_UNKNOWN_MESSAGE: Final = "The container could not be located when it was looked for: its supervisor is gone"


class Unsettled(Exception):
    """Whether a container starts or fails is decided in this very moment: ask again."""


@dataclass(frozen=True, slots=True)
class KeptContainer:
    """One that ran, or runs."""

    directory: str
    plan: Plan
    started: Started
    exited: Exited | None


@dataclass(frozen=True, slots=True)
class KeptPod:
    uid: str
    namespace: str
    name: str
    containers: tuple[KeptContainer, ...]


def pod_directory(root: str, uid: str) -> str:
    return f"{root}/pods/{uid}"


def make_pod(root: str, uid: str, namespace: str, name: str) -> None:
    directory = pod_directory(root, uid)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    notes.write(directory, _POD, {"namespace": namespace, "name": name})


def make_container(directory: str, plan: Plan) -> None:
    os.makedirs(f"{directory}/{notes.ROOT}", mode=0o700)
    notes.write(directory, PLAN, plan)
    if plan["termination_log"]:
        os.makedirs(os.path.dirname(plan["termination_log"]), exist_ok=True)
        handle = os.open(plan["termination_log"], os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
        try:
            # Whoever the container runs as may write it.
            os.fchmod(handle, 0o666)
        finally:
            os.close(handle)


def remove(directory: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _give_up(directory: str, *container_ids: str) -> None:
    """Nobody can say what this was: end what may run of it, and clear it away."""
    LOG.warning("%s cannot be understood: what runs of it is ended", directory)
    for each in container_ids:
        tree.kill_all(tree.marked(each))
    remove(directory)


def ending(directory: str, plan: Plan, now_ns: int) -> Exited:
    """How a container ended whose supervisor is gone."""
    found: Exited | None = _note(directory, EXITED)
    if found is not None:
        return found
    tree.kill_all(tree.marked(plan["id"]))
    exited = Exited(code=137, at_ns=now_ns, reason=UNKNOWN, message=_UNKNOWN_MESSAGE)
    with suppress(OSError):
        notes.write(directory, EXITED, exited)
    return exited


def find_all(root: str, now_ns: int) -> list[KeptPod]:
    """Every pod of an earlier agent. Raises `Unsettled` while a supervisor is about to start its command."""
    found = []
    for uid in _names(f"{root}/pods"):
        directory = pod_directory(root, uid)
        pod = _note(directory, _POD)
        if pod is None:
            _give_up(directory, *_names(directory))
            continue
        containers = tuple(_containers(directory, now_ns))
        found.append(KeptPod(uid, str(pod["namespace"]), str(pod["name"]), containers))
    return found


def _containers(pod: str, now_ns: int) -> Iterator[KeptContainer]:
    for name in _names(pod):
        directory = f"{pod}/{name}"
        if not os.path.isdir(directory):
            continue
        plan, lock = _note(directory, PLAN), notes.lock(directory)
        try:
            # With the lock in our hands no supervisor is there, and a late one will not begin.
            started: Started | None = _note(directory, STARTED)
            if plan is None:
                _give_up(directory, name)
            elif lock is not None and started is None:
                remove(directory)
            elif started is None:
                raise Unsettled
            else:
                exited = ending(directory, plan, now_ns) if lock is not None else None
                yield KeptContainer(directory, plan, started, exited)
        finally:
            if lock is not None:
                os.close(lock)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def _note(directory: str, name: str) -> Any:
    """A note, or None also when it cannot be understood: then it is as if nobody had written it."""
    try:
        return notes.read(directory, name)
    except ValueError:
        return None
