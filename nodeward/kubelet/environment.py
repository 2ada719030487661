"""The environment of a container: values, references to the API and to the pod itself, and where services are.

In go a pod (with the status its node knows), a container and the sources; out come variables in the order they were
declared, those from services last. A reference that leads nowhere is `NotConfigured` with upstream's text. Called
when a container's request is built; on a simulated node also when a command in the container reads its variables.

What must stay true: a later variable overrides an earlier one of the same name, `env` overrides `envFrom`, and both
override services; a text may refer only to variables before it, and to services.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nodeward.api.core_v1.container import Container, EnvFromSource, EnvVarSource, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.base.quantity import Quantity
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.downward import resource_text, variable_text
from nodeward.kubelet.env_files import read_variable
from nodeward.kubelet.expansion import expand
from nodeward.kubelet.node.admission import is_static
from nodeward.kubelet.service_variables import service_variables
from nodeward.kubelet.volumes.object_cache import NotThere, ObjectCache

#: Reads a file of a pod's volume: (pod, volume, path) to (the file's name for people, its bytes).
ReadFile: TypeAlias = Callable[[Pod, str, str], Awaitable[tuple[str, bytes]]]


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """What environments are made from, on one node."""

    objects: ObjectCache
    allocatable: Mapping[str, Quantity]
    host_ips: tuple[str, ...]
    read_file: ReadFile


class EnvironmentResolver:
    """Resolves the environments of one node's containers.

    `when_read`: variables that can always be resolved are left out of `resolve`, because nothing runs that would read
    them; `read` gives them when somebody asks.
    """

    __slots__ = ("_around", "_when_read")

    def __init__(self, around: EnvironmentSources, *, when_read: bool = False) -> None:
        self._around = around
        self._when_read = when_read

    async def resolve(
        self, current: Callable[[], Pod], container: Container | EphemeralContainer
    ) -> dict[str, str]:
        """The variables a container starts with. `current` gives the pod with the status its node knows."""
        if self._when_read and not _can_fail(container):
            return {}
        return await environment(current(), container, self._around)

    async def read(self, pod: Pod, container: Container | EphemeralContainer) -> dict[str, str]:
        """The variables of a container that runs and whose environment was left for later."""
        return await environment(pod, container, self._around)


def _can_fail(container: Container | EphemeralContainer) -> bool:
    """Whether the container's start depends on its variables."""
    return bool(
        container.env_from
        or any(each.value_from is not None for each in container.env)
        or any(each.sub_path_expr for each in container.volume_mounts)
    )


async def environment(
    pod: Pod, container: Container | EphemeralContainer, around: EnvironmentSources
) -> dict[str, str]:
    """The variables of a container. Raises `NotConfigured`."""
    try:
        services = await _services(pod, around.objects)
        found: dict[str, str] = {}
        for source in container.env_from:
            found |= await _all_of(pod, source, around.objects)
        for variable in container.env:
            if variable.value:
                found[variable.name] = expand(variable.value, found, services)
            elif variable.value_from is not None:
                value = await _value(pod, container, variable.value_from, around)
                if value is not None:
                    found[variable.name] = value
            else:
                found[variable.name] = ""
    except WorldError as error:
        raise NotConfigured(CONFIG_ERROR, str(error)) from error
    for name, value in services.items():
        found.setdefault(name, value)
    return found


async def _services(pod: Pod, objects: ObjectCache) -> dict[str, str]:
    with_links = pod.spec.enable_service_links is not False
    namespace = pod.metadata.namespace
    try:
        services = list(await objects.services("default"))
        if with_links and namespace != "default":
            services += await objects.services(namespace)
    except WorldError as error:
        if is_static(pod):
            # It may be what makes the API reachable: it starts without.
            return {}
        raise WorldError("services have not yet been read at least once, cannot construct envvars") from error
    return service_variables(services, namespace, with_links=with_links)


async def _all_of(pod: Pod, source: EnvFromSource, objects: ObjectCache) -> dict[str, str]:
    """Every entry of a config map or secret. Names need not look like names since 1.34."""
    namespace = pod.metadata.namespace
    values: dict[str, str] = {}
    if source.config_map_ref is not None:
        try:
            values = (await objects.config_map(namespace, source.config_map_ref.name)).data
        except NotThere:
            if not source.config_map_ref.optional:
                raise
    elif source.secret_ref is not None:
        try:
            secret = await objects.secret(namespace, source.secret_ref.name)
            values = {key: _text(data) for key, data in secret.data.items()}
        except NotThere:
            if not source.secret_ref.optional:
                raise
    return {source.prefix + key: values[key] for key in sorted(values)}


async def _value(
    pod: Pod, container: Container | EphemeralContainer, source: EnvVarSource, around: EnvironmentSources
) -> str | None:
    """What a reference leads to; None if it is optional and leads nowhere."""
    if source.field_ref is not None:
        return variable_text(pod, source.field_ref.field_path, around.host_ips)
    if source.resource_field_ref is not None:
        return resource_text(pod, source.resource_field_ref, around.allocatable, container)
    if source.config_map_key_ref is not None:
        return await _config_map_key(pod, source, around.objects)
    if source.secret_key_ref is not None:
        return await _secret_key(pod, source, around.objects)
    if source.file_key_ref is not None:
        return await _file_key(pod, source, around.read_file)
    return ""


async def _config_map_key(pod: Pod, source: EnvVarSource, objects: ObjectCache) -> str | None:
    wanted, namespace = source.config_map_key_ref, pod.metadata.namespace
    if wanted is None:
        return None
    try:
        value = (await objects.config_map(namespace, wanted.name)).data.get(wanted.key)
    except NotThere:
        if wanted.optional:
            return None
        raise
    if value is None and not wanted.optional:
        raise WorldError(f"couldn't find key {wanted.key} in ConfigMap {namespace}/{wanted.name}")
    return value


async def _secret_key(pod: Pod, source: EnvVarSource, objects: ObjectCache) -> str | None:
    wanted, namespace = source.secret_key_ref, pod.metadata.namespace
    if wanted is None:
        return None
    try:
        data = (await objects.secret(namespace, wanted.name)).data.get(wanted.key)
    except NotThere:
        if wanted.optional:
            return None
        raise
    if data is None and not wanted.optional:
        raise WorldError(f"couldn't find key {wanted.key} in Secret {namespace}/{wanted.name}")
    return None if data is None else _text(data)


async def _file_key(pod: Pod, source: EnvVarSource, read_file: ReadFile) -> str | None:
    wanted = source.file_key_ref
    if wanted is None:
        return None
    if not any(each.name == wanted.volume_name for each in pod.spec.volumes):
        raise WorldError(f"cannot find the volume {quote(wanted.volume_name)} referenced by FileKeyRef")
    try:
        file, data = await read_file(pod, wanted.volume_name, wanted.path)
    except OSError:
        raise WorldError("couldn't parse env file") from None
    value = read_variable(data, wanted.key)
    if not value:
        if wanted.optional:
            return None
        raise WorldError(f"environment variable key {quote(wanted.key)} not found in file {quote(file)}")
    return value


def _text(data: bytes) -> str:
    """Bytes of a secret as the variable a process is given, which may hold any of them but zero."""
    return data.decode("utf-8", "surrogateescape")
