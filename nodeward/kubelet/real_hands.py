"""What a node with real containers does beside its runtime: volumes, environment, hooks, probes.

One `RealHands` is one node's; the rooms it is made of do the work. Everything of a pod lies below the node's root
directory as upstream lays it out: `pods/<uid>/volumes/...`, `pods/<uid>/containers/<name>/<attempt>` (termination
messages); logs in `<logs>/<namespace>_<name>_<uid>/<container>/<attempt>.log`.

What must stay true: of one pod, volumes are made, written anew and taken away by one at a time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from nodeward.api.core_v1.container import Container, EphemeralContainer, VolumeMount
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.environment import CONFIG_ERROR, Surroundings, environment
from nodeward.kubelet.expansion import expand_all, expand_with
from nodeward.kubelet.hands import NotConfigured
from nodeward.kubelet.hooks import Hooks
from nodeward.kubelet.log_files import container_log_path, pod_log_directory
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.probing.prober import Prober
from nodeward.kubelet.runtime.interface import ContainerRequest, Mount, Runtime
from nodeward.kubelet.volumes.objects import Objects
from nodeward.kubelet.volumes.payloads import Sources
from nodeward.kubelet.volumes.pod_volumes import Placed, PodVolumes
from nodeward.kubelet.volumes.sub_paths import Escapes, check_sub_path, resolve_sub_path
from nodeward.kubelet.volumes.tokens import Tokens
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock


class RealHands:
    """The hands of one node. `root` is its own directory; `logs` is where logs go, below it unless said."""

    def __init__(
        self,
        specification: NodeSpecification,
        client: Client,
        clock: Clock,
        chance: Chance,
        runtime: Runtime,
        root: Path,
        logs: Path | None = None,
    ) -> None:
        model = specification.model
        self._specification = specification
        self._logs = logs or root / "logs" / "pods"
        self._allocatable = model.allocatable()
        self._objects = Objects(client, clock)
        tokens = Tokens(client, clock, chance)
        self._volumes = PodVolumes(root, clock, Sources(self._objects, tokens, self._allocatable))
        version = ".".join(model.kubelet_version.removeprefix("v").split(".")[:2])
        self._prober = Prober(runtime, clock, version)
        self._hooks = Hooks(runtime, clock, version)
        self._locks: dict[str, asyncio.Lock] = {}

    # -- volumes

    async def prepare(self, pod: Pod) -> str:
        directory = pod_log_directory(str(self._logs), pod)
        async with self._lock(pod.metadata.uid):
            try:
                await asyncio.to_thread(os.makedirs, directory, 0o755, exist_ok=True)
                await self._volumes.set_up(pod)
            except OSError as error:
                raise WorldError(f"cannot make the directories of the pod: {error}") from error
        return directory

    async def refresh(self, pod: Pod) -> None:
        async with self._lock(pod.metadata.uid):
            await self._volumes.refresh(pod)

    async def release(self, pod: Pod) -> None:
        await self._tear_down(pod.metadata.uid)

    async def forget(self, uid: str) -> None:
        await self._tear_down(uid)
        self._locks.pop(uid, None)

        def remove_logs() -> None:
            for directory in self._logs.glob(f"*_{uid}"):
                shutil.rmtree(directory, ignore_errors=True)

        await asyncio.to_thread(remove_logs)

    async def keep_only(self, uids: Collection[str]) -> None:
        for uid in await asyncio.to_thread(self._present):
            if uid not in uids:
                await self.forget(uid)

    def _present(self) -> list[str]:
        """The pods of which there is anything on the disk."""
        directories = {each.name for each in self._volumes.directory("").glob("*")}
        return sorted(directories | {each.name.rpartition("_")[2] for each in self._logs.glob("*_*_*")})

    async def _tear_down(self, uid: str) -> None:
        async with self._lock(uid):
            await self._volumes.tear_down(uid)

    def _lock(self, uid: str) -> asyncio.Lock:
        return self._locks.setdefault(uid, asyncio.Lock())

    # -- containers

    async def request(self, pod: Pod, container: str, attempt: int) -> ContainerRequest:
        spec = _container(pod, container)
        _check_user(pod, spec)
        try:
            async with self._lock(pod.metadata.uid):
                placed = await self._volumes.placed(pod)
        except (WorldError, OSError) as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error
        around = Surroundings(
            self._objects,
            self._allocatable,
            self._specification.addresses,
            {name: each.path for name, each in placed.items()},
        )
        env = await environment(pod, spec, around)
        try:
            mounts = tuple(_mount(spec, each, placed, env) for each in spec.volume_mounts)
            log = container_log_path(pod_log_directory(str(self._logs), pod), container, attempt)
            Path(log).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            termination = self._termination_log(pod, spec, attempt)
        except OSError as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error
        return ContainerRequest(
            pod,
            _as_container(spec),
            attempt,
            env,
            command=expand_all(spec.command, env),
            args=expand_all(spec.args, env),
            mounts=mounts,
            log_path=log,
            termination_log=termination,
        )

    def _termination_log(self, pod: Pod, spec: Container | EphemeralContainer, attempt: int) -> str:
        """A file anybody in the container may write to."""
        if not spec.termination_message_path:
            return ""
        file = self._volumes.directory(pod.metadata.uid) / "containers" / spec.name / str(attempt)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        file.write_bytes(b"")
        file.chmod(0o666)
        return str(file)

    # -- asking

    async def probe(self, pod: Pod, plan: ProbePlan) -> tuple[bool | None, str]:
        answer = await self._prober.ask(pod, _container(pod, plan.container), plan.probe)
        return answer.ok, answer.text

    async def hook(self, pod: Pod, container: str, kind: str, seconds: float) -> tuple[bool, str]:
        return await self._hooks.run(pod, _container(pod, container), kind, seconds)

    async def gate_probe(self, probe: GateProbe) -> ProbeOutcome:
        return await self._prober.ask_gate(probe)


def _container(pod: Pod, name: str) -> Container | EphemeralContainer:
    for each in (*pod.spec.containers, *pod.spec.init_containers):
        if each.name == name:
            return each
    for ephemeral in pod.spec.ephemeral_containers:
        if ephemeral.name == name:
            return ephemeral
    raise WorldError(f"container {quote(name)} is not in pod {pod.metadata.namespace}/{pod.metadata.name}")


def _as_container(spec: Container | EphemeralContainer) -> Container:
    """A container that was added to a running pod is run as any other."""
    if isinstance(spec, Container):
        return spec
    return Container(**{name: getattr(spec, name) for name in Container.__struct_fields__})


def _check_user(pod: Pod, spec: Container | EphemeralContainer) -> None:
    """What can be known without the image: a root user where there must be none."""
    whole, own = pod.spec.security_context, spec.security_context
    must_not = whole.run_as_non_root if whole is not None else None
    user = whole.run_as_user if whole is not None else None
    if own is not None:
        must_not = own.run_as_non_root if own.run_as_non_root is not None else must_not
        user = own.run_as_user if own.run_as_user is not None else user
    if must_not and user == 0:
        meta = pod.metadata
        shown = quote(f"{meta.name}_{meta.namespace}({meta.uid})")
        raise NotConfigured(
            CONFIG_ERROR,
            f"container's runAsUser breaks non-root policy (pod: {shown}, container: {spec.name})",
        )


def _mount(
    spec: Container | EphemeralContainer,
    wanted: VolumeMount,
    placed: Mapping[str, Placed],
    env: Mapping[str, str],
) -> Mount:
    volume = placed.get(wanted.name)
    if volume is None:
        raise NotConfigured(
            CONFIG_ERROR,
            f"cannot find volume {quote(wanted.name)} to mount into container {quote(spec.name)}",
        )
    source = volume.path
    sub_path = wanted.sub_path
    if wanted.sub_path_expr:
        sub_path = _expanded(wanted.sub_path_expr, env)
    if sub_path:
        try:
            check_sub_path(sub_path)
        except Escapes as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error
        try:
            source = resolve_sub_path(volume.path, sub_path)
        except Escapes as error:
            # No more than that: the rest would tell about the node's own files.
            text = (
                f"failed to prepare subPath for volumeMount {quote(wanted.name)} "
                f"of container {quote(spec.name)}"
            )
            raise NotConfigured(CONFIG_ERROR, text) from error
    target = wanted.mount_path if wanted.mount_path.startswith("/") else f"/{wanted.mount_path}"
    is_read_only = wanted.read_only or volume.is_read_only
    return Mount(str(source), target, is_read_only, tuple(wanted.bind_mount_options))


def _expanded(expression: str, env: Mapping[str, str]) -> str:
    missing: list[str] = []

    def value_of(name: str) -> str | None:
        if name not in env:
            missing.append(name)
        return env.get(name)

    text = expand_with(expression, value_of)
    if missing:
        raise NotConfigured(CONFIG_ERROR, f"missing value for {quote(missing[0])}")
    return text
