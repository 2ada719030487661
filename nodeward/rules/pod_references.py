"""Which other API objects a pod names: secrets, config maps, claims, and whether it names any at all.

Pure: in goes a pod's spec, out come names in the order in which they stand, empty ones left out. A static pod may
name none, because the node that shows it would get access to them.

Called by the API server and the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.volume import Volume, VolumeProjection

#: The annotation that marks the API's copy of a static pod.
MIRROR = "kubernetes.io/config.mirror"


def all_containers(spec: PodSpec) -> Iterator[Container | EphemeralContainer]:
    """Yield init containers, containers, ephemeral containers."""
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers


def secret_names(spec: PodSpec) -> Iterator[str]:
    """Return every secret the pod names, directly or through a volume."""
    yield from (reference.name for reference in spec.image_pull_secrets if reference.name)
    for container in all_containers(spec):
        for source in container.env_from:
            if source.secret_ref is not None and source.secret_ref.name:
                yield source.secret_ref.name
        for variable in container.env:
            value = variable.value_from
            if value is not None and value.secret_key_ref is not None and value.secret_key_ref.name:
                yield value.secret_key_ref.name
    for volume in spec.volumes:
        yield from (name for name in _volume_secrets(volume) if name)


def config_map_names(spec: PodSpec) -> Iterator[str]:
    """Return every config map the pod names."""
    for container in all_containers(spec):
        for source in container.env_from:
            if source.config_map_ref is not None and source.config_map_ref.name:
                yield source.config_map_ref.name
        for variable in container.env:
            value = variable.value_from
            if value is not None and value.config_map_key_ref is not None and value.config_map_key_ref.name:
                yield value.config_map_key_ref.name
    for volume in spec.volumes:
        if volume.config_map is not None and volume.config_map.name:
            yield volume.config_map.name
        if volume.projected is not None:
            for projection in volume.projected.sources:
                if projection.config_map is not None and projection.config_map.name:
                    yield projection.config_map.name


def api_reference(spec: PodSpec) -> str:
    """Return the first sort of API object the pod refers to, in the words of a refusal; "" if none."""
    if spec.service_account_name:
        return "serviceaccounts"
    if any(True for _ in secret_names(spec)):
        return "secrets"
    if any(True for _ in config_map_names(spec)):
        return "configmaps"
    if spec.resource_claims:
        return "resourceclaims"
    for volume in spec.volumes:
        found = _volume_reference(volume)
        if found:
            return found
    return ""


def _volume_secrets(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    if volume.azure_file is not None:
        yield volume.azure_file.secret_name
    if volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield volume.csi.node_publish_secret_ref.name
    if volume.projected is not None:
        yield from (source.secret.name for source in volume.projected.sources if source.secret is not None)
    for source in (
        volume.cephfs,
        volume.cinder,
        volume.flex_volume,
        volume.rbd,
        volume.scale_io,
        volume.iscsi,
        volume.storageos,
    ):
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref.name


def _volume_reference(volume: Volume) -> str:
    if volume.config_map is not None:
        return "configmaps (via configmap volumes)"
    if volume.secret is not None:
        return "secrets (via secret volumes)"
    if volume.csi is not None:
        return "csidrivers (via CSI volumes)"
    if volume.glusterfs is not None:
        return "endpoints (via glusterFS volumes)"
    if volume.persistent_volume_claim is not None:
        return "persistentvolumeclaims"
    if volume.ephemeral is not None:
        return "persistentvolumeclaims (via ephemeral volumes)"
    if volume.azure_file is not None:
        return "secrets (via azureFile volumes)"
    sources = volume.projected.sources if volume.projected is not None else ()
    return next((found for source in sources if (found := _projection_reference(source))), "")


def _projection_reference(source: VolumeProjection) -> str:
    if source.config_map is not None:
        return "configmaps (via projected volumes)"
    if source.secret is not None:
        return "secrets (via projected volumes)"
    if source.service_account_token is not None:
        return "serviceaccounts (via projected volumes)"
    if source.cluster_trust_bundle is not None:
        return "clustertrustbundles"
    return "podcertificates" if source.pod_certificate is not None else ""
