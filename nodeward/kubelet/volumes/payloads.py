"""What is in a volume that follows the API: config maps, secrets, the pod's own fields, tokens, and several in one.

In go a pod and a source; out come files (`Payload`). The texts of what is missing are upstream's. A source that says
`optional` and is not there gives no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import KeyToPath
from nodeward.api.core_v1.volume import ProjectedVolumeSource, Volume, VolumeProjection
from nodeward.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    SecretVolumeSource,
)
from nodeward.base.errors import WorldError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.downward import AssignedCPUs, field_text, resource_text
from nodeward.kubelet.volumes.atomic_writer import FileContent, Payload
from nodeward.kubelet.volumes.object_cache import NotThere, ObjectCache
from nodeward.kubelet.volumes.tokens import Tokens

_DEFAULT_MODE: Final = 0o644
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Sources:
    """Where payloads come from, on one node."""

    objects: ObjectCache
    tokens: Tokens
    allocatable: Mapping[str, Quantity]
    #: None: a kubelet that does not know `assigned.cpuset`
    assigned_cpus: AssignedCPUs | None = None


def follows_the_api(volume: Volume) -> bool:
    """Whether what is in the volume is a payload, which must be kept up to date."""
    return bool(volume.config_map or volume.secret or volume.downward_api or volume.projected)


async def payload_of(pod: Pod, volume: Volume, sources: Sources) -> Payload:
    """The files of a volume that follows the API."""
    if volume.config_map is not None:
        return await _config_map(pod, volume.config_map, sources)
    if volume.secret is not None:
        return await _secret(pod, volume.secret, sources)
    if volume.downward_api is not None:
        return own_fields(pod, volume, sources)
    if volume.projected is not None:
        return await _projected(pod, volume.projected, sources)
    return {}


def own_fields(pod: Pod, volume: Volume, sources: Sources) -> Payload:
    """The files of a volume that show the pod's own fields and resources; these take no request to the API."""
    if volume.downward_api is not None:
        source = volume.downward_api
        return _downward(pod, source.items, _mode(source.default_mode), source.default_user, sources)
    files: dict[str, FileContent] = {}
    if volume.projected is not None:
        mode, user = _mode(volume.projected.default_mode), volume.projected.default_user
        for each in volume.projected.sources:
            if each.downward_api is not None:
                files |= _downward(pod, each.downward_api.items, mode, user, sources)
    return files


async def _config_map(pod: Pod, source: ConfigMapVolumeSource, sources: Sources) -> Payload:
    mode = _mode(source.default_mode)
    found = await _optional_config_map(pod, source.name, source.optional, sources.objects)
    data = _config_map_data(found)
    return _pick(data, source.items, mode, source.default_user, _CONFIG_MAP, source.optional)


async def _secret(pod: Pod, source: SecretVolumeSource, sources: Sources) -> Payload:
    mode = _mode(source.default_mode)
    found = await _optional_secret(pod, source.secret_name, source.optional, sources.objects)
    return _pick(found.data, source.items, mode, source.default_user, _SECRET, source.optional)


async def _projected(pod: Pod, source: ProjectedVolumeSource, sources: Sources) -> Payload:
    mode = _mode(source.default_mode)
    files: dict[str, FileContent] = {}
    problems = []
    for each in source.sources:
        try:
            files |= await _projection(pod, each, mode, source.default_user, sources)
        except WorldError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise WorldError(problems[0])
    if problems:
        raise WorldError(f"[{', '.join(problems)}]")
    return files


async def _projection(
    pod: Pod, each: VolumeProjection, mode: int, user: int | None, sources: Sources
) -> Payload:
    objects = sources.objects
    if each.config_map is not None:
        wanted = each.config_map
        config_map = await _optional_config_map(pod, wanted.name, wanted.optional, objects)
        data = _config_map_data(config_map)
        return _pick(data, wanted.items, mode, user, _CONFIG_MAP, wanted.optional)
    if each.secret is not None:
        hidden = each.secret
        secret = await _optional_secret(pod, hidden.name, hidden.optional, objects)
        return _pick(secret.data, hidden.items, mode, user, _SECRET, hidden.optional)
    if each.downward_api is not None:
        return _downward(pod, each.downward_api.items, mode, user, sources)
    if each.service_account_token is not None:
        token = each.service_account_token
        text = await sources.tokens.token(pod, token)
        owner = token.user if token.user is not None else user
        owner = owner if owner is not None else _one_user(pod)
        context = pod.spec.security_context
        is_private = owner is not None or (context is not None and context.fs_group is not None)
        # With a group, the writer lets it read what only the owner could.
        return {token.path: FileContent(text.encode(), _PRIVATE if is_private else mode, owner)}
    if each.cluster_trust_bundle is not None:
        raise WorldError("ClusterTrustBundle projections are not supported by this kubelet")
    if each.pod_certificate is not None:
        raise WorldError("PodCertificate projections are not supported by this kubelet")
    return {}


_CONFIG_MAP: Final = "configmap references non-existent config key: {}"
_SECRET: Final = "references non-existent secret key: {}"


async def _optional_config_map(pod: Pod, name: str, optional: bool | None, objects: ObjectCache) -> ConfigMap:
    try:
        return await objects.config_map(pod.metadata.namespace, name)
    except NotThere:
        if not optional:
            raise
        return ConfigMap()


async def _optional_secret(pod: Pod, name: str, optional: bool | None, objects: ObjectCache) -> Secret:
    try:
        return await objects.secret(pod.metadata.namespace, name)
    except NotThere:
        if not optional:
            raise
        return Secret()


def _config_map_data(found: ConfigMap) -> dict[str, bytes]:
    return {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}


def _pick(
    data: Mapping[str, bytes],
    items: list[KeyToPath],
    mode: int,
    user: int | None,
    complaint: str,
    optional: bool | None,
) -> Payload:
    if not items:
        return {key: FileContent(value, mode, user) for key, value in data.items()}
    files = {}
    for item in items:
        value = data.get(item.key)
        if value is None:
            if optional:
                continue
            raise WorldError(complaint.format(item.key))
        owner = item.user if item.user is not None else user
        files[item.path] = FileContent(value, mode if item.mode is None else item.mode, owner)
    return files


def _downward(
    pod: Pod,
    items: list[DownwardAPIVolumeFile],
    mode: int,
    user: int | None,
    sources: Sources,
) -> Payload:
    files = {}
    for item in items:
        text = ""
        if item.field_ref is not None:
            text = field_text(pod, item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = resource_text(
                pod, item.resource_field_ref, sources.allocatable, assigned_cpus=sources.assigned_cpus
            )
        owner = item.user if item.user is not None else user
        path = str(PurePosixPath(item.path))
        files[path] = FileContent(text.encode(), mode if item.mode is None else item.mode, owner)
    return files


def _mode(given: int | None) -> int:
    return _DEFAULT_MODE if given is None else given


def _one_user(pod: Pod) -> int | None:
    """The user all containers run as, if it is one and the spec says so."""
    whole = pod.spec.security_context.run_as_user if pod.spec.security_context is not None else None
    found: list[int | None] = []
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        own = container.security_context.run_as_user if container.security_context is not None else None
        user = whole if own is None else own
        if user not in found:
            found.append(user)
    return found[0] if len(found) == 1 else None
