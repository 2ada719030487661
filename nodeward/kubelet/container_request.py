"""Everything one container needs to start, worked out from the pod and the API: a `ContainerRequest`.

A pod worker calls `container_request` when the pod's life asks for a container; the request goes to the runtime. It
uses the node's volume manager and environment resolver. Whatever is missing is `NotConfigured`, with upstream's text.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, EphemeralContainer, ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.environment import EnvironmentResolver
from nodeward.kubelet.expansion import expand_all
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.kubelet.volumes.volume_manager import VolumeManager


async def container_request(
    volumes: VolumeManager,
    environment: EnvironmentResolver,
    pod: Pod,
    current: Callable[[], Pod],
    name: str,
    attempt: int,
    allocated: ResourceRequirements | None = None,
    cpuset: str = "",
    *,
    has_cpu_quota: bool = True,
    cdi_ids: tuple[str, ...] = (),
) -> ContainerRequest:
    """The request of one container. `current` gives the pod with the status its node knows: addresses are in it.

    `allocated`: what the node has promised the container, if that may differ from its spec. `cpuset`: the CPUs
    it may run on. `has_cpu_quota`: False if they are its own. `cdi_ids`: the devices of its claims.
    """
    container = container_of(pod, name)
    _check_user(pod, container)
    env = await environment.resolve(current, container)
    try:
        mounts = await volumes.mounts(pod, container, env) if container.volume_mounts else ()
        log_path, termination_log = volumes.container_files(pod, container, attempt)
    except OSError as error:
        raise NotConfigured(CONFIG_ERROR, str(error)) from error
    container = _as_container(container)
    if allocated is not None and allocated is not container.resources and allocated != container.resources:
        container = replace(container, resources=allocated)
    return ContainerRequest(
        pod,
        container,
        attempt,
        env,
        command=expand_all(container.command, env),
        args=expand_all(container.args, env),
        mounts=mounts,
        cpuset=cpuset,
        has_cpu_quota=has_cpu_quota,
        cdi_ids=cdi_ids,
        log_path=log_path,
        termination_log=termination_log,
    )


def container_of(pod: Pod, name: str) -> Container | EphemeralContainer:
    """The container of that name, of whatever kind."""
    for each in pod.spec.containers:
        if each.name == name:
            return each
    for each in pod.spec.init_containers:
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
    """Refuse what can be refused without the image: a root user where there must be none."""
    whole, own = pod.spec.security_context, spec.security_context
    if whole is None and own is None:
        return
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
