"""A tiny node: plays the runtime and the agent around one pod's life, in virtual nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from nodeward.api.core_v1.container import (
    Container,
    EphemeralContainer,
    Lifecycle,
    LifecycleHandler,
    SleepAction,
)
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import ContainerStatus, PodCondition, PodStatus
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.features.gates import Gates
from nodeward.kubelet.pods.commands import (
    Command,
    DeleteFromApi,
    RecordEvent,
    RemoveContainer,
    RemovePod,
    RunHook,
    StartContainer,
    StartSandbox,
    StopContainer,
    UpdateResources,
)
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    FoundPod,
    ImagePulled,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    SandboxFailed,
    SandboxStarted,
)

BEGIN = 1_790_000_000 * SECOND_NS
RULES = LifecycleRules(Gates.of("1.37"), ("10.0.0.1",), "sim")
UID = "0a1b"

HOOK = LifecycleHandler(sleep=SleepAction(seconds=1))


def container(name: str = "c", **fields: object) -> Container:
    made = Container(name=name, image=f"{name}:1")
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def hooked(name: str = "c", *, post_start: bool = False, pre_stop: bool = False) -> Container:
    hooks = Lifecycle(post_start=HOOK if post_start else None, pre_stop=HOOK if pre_stop else None)
    return container(name, lifecycle=hooks)


def sidecar(name: str, **fields: object) -> Container:
    return container(name, restart_policy="Always", **fields)


def debugger(name: str) -> EphemeralContainer:
    return EphemeralContainer(name=name, image=f"{name}:1")


def a_pod(
    *mains: Container, policy: str = "Always", inits: Iterable[Container] = (), **fields: object
) -> Pod:
    spec = PodSpec(
        restart_policy=policy,
        containers=list(mains) or [container()],
        init_containers=list(inits),
        termination_grace_period_seconds=30,
    )
    for field, value in fields.items():
        setattr(spec, field, value)
    return Pod(metadata=ObjectMeta(name="web", namespace="shop", uid=UID, generation=1), spec=spec)


def deleted(pod: Pod, now_ns: int, grace: int = 30) -> Pod:
    """The pod as the API shows it after a DELETE."""
    meta = ObjectMeta(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
        generation=2,
        annotations=pod.metadata.annotations,
        deletion_timestamp=rfc3339(now_ns + grace * SECOND_NS),
        deletion_grace_period_seconds=grace,
    )
    return Pod(metadata=meta, spec=pod.spec, status=pod.status)


class Node:
    """Does what the pod's life asks for, and tells it what came of it."""

    def __init__(self, pod: Pod, rules: LifecycleRules = RULES, found: FoundPod | None = None) -> None:
        self.now = BEGIN
        self.pod = pod
        self.life = PodLifecycle(pod, self.now, rules, found)
        self.told: list[RecordEvent] = []
        #: everything but events, in short: "start c 0", "stop c 30"
        self.did: list[str] = []
        self.running: dict[str, str] = {}
        self.started_at: dict[str, int] = {}
        #: starts, and hooks, that are not answered
        self.held: set[str] = set()
        #: starts that fail, with reason and message
        self.failing: dict[str, tuple[str, str]] = {}
        #: containers that go only when killed
        self.stubborn: set[str] = set()
        self.code_on_stop = 143
        self.sandbox_fails = ""
        #: why the runtime refuses other resources
        self.update_fails = ""
        self.is_gone_held = False
        self._later: list[tuple[int, str, int]] = []
        if found is not None:
            for each in found.containers:
                if each.exited is None:
                    self.running[each.name] = each.id
                    self.started_at[each.name] = each.started_ns

    def start(self) -> Self:
        self.do(self.life.start(self.now))
        return self

    def do(self, commands: list[Command]) -> None:
        for command in commands:
            self._do(command)

    def _do(self, command: Command) -> None:
        match command:
            case RecordEvent():
                self.told.append(command)
            case StartSandbox():
                self.did.append("sandbox")
                if self.sandbox_fails:
                    self.tell(SandboxFailed(UID, self.sandbox_fails))
                elif "sandbox" not in self.held:
                    self.tell(SandboxStarted(UID, "s0", ("10.1.0.5",)))
            case StartContainer(name, attempt):
                self.did.append(f"start {name} {attempt}")
                assert name not in self.running, f"two of {name}"
                if name in self.failing:
                    self.tell(ContainerFailed(UID, name, *self.failing[name]))
                elif name not in self.held:
                    self.tell(ImagePulled(UID, name, f"{name}:1", was_present=True))
                    self.has_started(name, attempt)
            case StopContainer(name, grace):
                self.did.append(f"stop {name} {grace:g}")
                if name in self.stubborn:
                    self._later.append((self.now + int(grace * SECOND_NS), name, 137))
                else:
                    self.exit(name, self.code_on_stop)
            case RunHook(name, kind):
                self.did.append(f"{kind} {name}")
                if kind not in self.held:
                    self.do(self.life.hook_done(name, kind, True, "", self.now))
            case RemoveContainer(id):
                self.did.append(f"remove {id}")
            case RemovePod():
                self.did.append("remove pod")
                self.running.clear()
                if not self.is_gone_held:
                    self.tell(PodGone(UID))
            case UpdateResources(name, resources):
                said = {
                    "shares": resources.cpu_shares,
                    "quota": resources.cpu_quota_us,
                    "memory": resources.memory_bytes,
                }
                words = [f"{key}={value}" for key, value in said.items() if value is not None]
                self.did.append(" ".join(("update", name, *words)))
                if self.update_fails:
                    self.tell(ResourcesRefused(UID, name, self.update_fails))
                elif "update" not in self.held:
                    self.tell(ResourcesApplied(UID, name, self.running[name], resources))
            case DeleteFromApi():
                self.did.append("delete")

    def tell(self, event: object) -> None:
        self.do(self.life.happened(event, self.now))  # type: ignore[arg-type]

    def has_started(self, name: str, attempt: int = 0) -> None:
        self.running[name] = f"{name}-{attempt}"
        self.started_at[name] = self.now
        self.tell(ContainerStarted(UID, name, f"{name}-{attempt}", f"{name}:1", "sha", self.now, attempt))

    def exit(self, name: str, code: int = 0, reason: str = "", message: str = "") -> None:
        id_ = self.running.pop(name, None)
        if id_ is None:
            return
        why = reason or ("Error" if code else "Completed")
        began = self.started_at[name]
        self.tell(ContainerExited(UID, name, id_, code, why, self.now, began, message=message))

    def delete(self, grace: int = 30) -> None:
        self.pod = deleted(self.pod, self.now, grace)
        self.do(self.life.update(self.pod, self.now))

    def run_for(self, seconds: float) -> None:
        """Let time pass, from one moment at which something is due to the next."""
        end = self.now + int(seconds * SECOND_NS)
        for _ in range(10_000):
            due = self.life.next_deadline_ns()
            moments = [each[0] for each in self._later] + ([due] if due is not None else [])
            at = min(moments, default=end)
            if at > end:
                break
            assert due is None or due > self.now or self.now == at, "a deadline in the past"
            self.now = max(self.now, at)
            for each in [one for one in self._later if one[0] <= self.now]:
                self._later.remove(each)
                self.exit(each[1], each[2])
            self.do(self.life.tick(self.now))
            if at == end:
                break
        else:
            raise AssertionError("time does not pass")
        self.now = end

    # -- questions

    def status(self) -> PodStatus:
        return self.life.status(self.now)

    def of(self, name: str = "c") -> ContainerStatus:
        status = self.status()
        every = (
            *status.init_container_statuses,
            *status.container_statuses,
            *status.ephemeral_container_statuses,
        )
        return next(each for each in every if each.name == name)

    def waiting(self, name: str = "c") -> str:
        waiting = self.of(name).state.waiting
        return waiting.reason if waiting is not None else ""

    def condition(self, type_: str) -> PodCondition:
        return next(each for each in self.status().conditions if each.type == type_)

    def events(self) -> list[str]:
        return [f"{each.reason}: {each.message}" for each in self.told]

    def flush(self) -> list[str]:
        did, self.did = self.did, []
        return did
