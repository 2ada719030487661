"""The graph behind the node authorizer: pods are bound to nodes, and refer to secrets, config maps, claims.

`security.py` feeds in pods, persistent volumes, volume attachments and resource slices; only names are kept. An object
is related to a node if a pod of that node refers to it, or if it is behind a claim that such a pod uses: secret ->
volume -> claim -> pod -> node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeSpec
from nodeward.api.core_v1.volume import Volume
from nodeward.api.resource_v1 import ResourceSlice
from nodeward.api.storage_v1 import VolumeAttachment

#: Written on the API's copy of a pod that a node runs from a file.
MIRROR: Final = "kubernetes.io/config.mirror"

#: Resource, namespace, name.
Thing: TypeAlias = tuple[str, str, str]
_Name: TypeAlias = tuple[str, str]


class NodeGraph:
    """The relations, and `is_related`. Used from one thread."""

    __slots__ = ("_attachments", "_nodes_of", "_pods", "_secret_volumes", "_slices", "_volumes")

    def __init__(self) -> None:
        #: Node and things of each bound pod.
        self._pods: dict[_Name, tuple[str, tuple[Thing, ...]]] = {}
        #: Thing: nodes with the number of pods there that refer to it.
        self._nodes_of: dict[Thing, dict[str, int]] = {}
        #: Claim and secrets of each bound volume; secret: volumes that need it.
        self._volumes: dict[str, tuple[_Name, tuple[_Name, ...]]] = {}
        self._secret_volumes: dict[_Name, dict[str, None]] = {}
        self._attachments: dict[str, str] = {}
        self._slices: dict[str, str] = {}

    def upsert_pod(self, pod: Pod) -> None:
        name = (pod.metadata.namespace, pod.metadata.name)
        new = (pod.spec.node_name, tuple(dict.fromkeys(pod_things(pod)))) if pod.spec.node_name else None
        if self._pods.get(name) == new:
            return
        self.remove_pod(*name)
        if new is not None:
            self._pods[name] = new
            for thing in new[1]:
                nodes = self._nodes_of.setdefault(thing, {})
                nodes[new[0]] = nodes.get(new[0], 0) + 1

    def remove_pod(self, namespace: str, name: str) -> None:
        old = self._pods.pop((namespace, name), None)
        if old is None:
            return
        node, things = old
        for thing in things:
            nodes = self._nodes_of[thing]
            nodes[node] -= 1
            if not nodes[node]:
                del nodes[node]
                if not nodes:
                    del self._nodes_of[thing]

    def upsert_volume(self, volume: PersistentVolume) -> None:
        name, claim = volume.metadata.name, volume.spec.claim_ref
        self.remove_volume(name)
        if claim is None:
            return
        secrets = tuple(dict.fromkeys(volume_secrets(volume.spec, claim.namespace)))
        self._volumes[name] = ((claim.namespace, claim.name), secrets)
        for secret in secrets:
            self._secret_volumes.setdefault(secret, {})[name] = None

    def remove_volume(self, name: str) -> None:
        _, secrets = self._volumes.pop(name, (("", ""), ()))
        for secret in secrets:
            volumes = self._secret_volumes[secret]
            del volumes[name]
            if not volumes:
                del self._secret_volumes[secret]

    def upsert_attachment(self, attachment: VolumeAttachment) -> None:
        self._attachments[attachment.metadata.name] = attachment.spec.node_name

    def remove_attachment(self, name: str) -> None:
        self._attachments.pop(name, None)

    def upsert_slice(self, item: ResourceSlice) -> None:
        self._slices[item.metadata.name] = item.spec.node_name or ""

    def remove_slice(self, name: str) -> None:
        self._slices.pop(name, None)

    def is_related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Tell whether the object is related to `node`, which is not empty."""
        match resource:
            case "pods":
                bound = self._pods.get((namespace, name))
                return bound is not None and bound[0] == node
            case "volumeattachments":
                return self._attachments.get(name) == node
            case "resourceslices":
                return self._slices.get(name) == node
            case "persistentvolumes":
                return self._is_volume_of(node, name)
            case _:
                if node in self._nodes_of.get((resource, namespace, name), ()):
                    return True
                volumes = self._secret_volumes.get((namespace, name), ()) if resource == "secrets" else ()
                return any(self._is_volume_of(node, volume) for volume in volumes)

    def _is_volume_of(self, node: str, volume: str) -> bool:
        bound = self._volumes.get(volume)
        return bound is not None and node in self._nodes_of.get(("persistentvolumeclaims", *bound[0]), ())


def pod_things(pod: Pod) -> Iterator[Thing]:
    """Return everything a bound pod gives its node access to."""
    # A node writes mirror pods itself, so such a pod must grant it nothing.
    if MIRROR in pod.metadata.annotations:
        return
    spec, namespace = pod.spec, pod.metadata.namespace
    if spec.service_account_name:
        yield "serviceaccounts", namespace, spec.service_account_name
    for reference in spec.image_pull_secrets:
        if reference.name:
            yield "secrets", namespace, reference.name
    for resource, name in _container_things(pod):
        if name:
            yield resource, namespace, name
    for volume in spec.volumes:
        for resource, name in _volume_things(volume, pod.metadata.name):
            if name:
                yield resource, namespace, name
    for claim in _resource_claims(pod):
        yield "resourceclaims", namespace, claim


def _container_things(pod: Pod) -> Iterator[tuple[str, str]]:
    spec = pod.spec
    containers: list[Container | EphemeralContainer] = [*spec.init_containers, *spec.containers]
    for container in [*containers, *spec.ephemeral_containers]:
        for source in container.env_from:
            if source.secret_ref is not None:
                yield "secrets", source.secret_ref.name
            if source.config_map_ref is not None:
                yield "configmaps", source.config_map_ref.name
        for variable in container.env:
            value = variable.value_from
            if value is not None and value.secret_key_ref is not None:
                yield "secrets", value.secret_key_ref.name
            if value is not None and value.config_map_key_ref is not None:
                yield "configmaps", value.config_map_key_ref.name


def _volume_things(volume: Volume, pod: str) -> Iterator[tuple[str, str]]:
    if volume.secret is not None:
        yield "secrets", volume.secret.secret_name
    elif volume.config_map is not None:
        yield "configmaps", volume.config_map.name
    elif volume.projected is not None:
        for source in volume.projected.sources:
            if source.secret is not None:
                yield "secrets", source.secret.name
            if source.config_map is not None:
                yield "configmaps", source.config_map.name
    elif volume.persistent_volume_claim is not None:
        yield "persistentvolumeclaims", volume.persistent_volume_claim.claim_name
    elif volume.ephemeral is not None:
        yield "persistentvolumeclaims", f"{pod}-{volume.name}"
    elif volume.azure_file is not None:
        yield "secrets", volume.azure_file.secret_name
    elif volume.csi is not None:
        if volume.csi.node_publish_secret_ref is not None:
            yield "secrets", volume.csi.node_publish_secret_ref.name
    else:
        for kind in (
            volume.cephfs,
            volume.cinder,
            volume.flex_volume,
            volume.rbd,
            volume.scale_io,
            volume.iscsi,
            volume.storageos,
        ):
            if kind is not None and kind.secret_ref is not None:
                yield "secrets", kind.secret_ref.name


def _resource_claims(pod: Pod) -> Iterator[str]:
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        # A claim from a template has its name once it was made; it may also turn out not to be needed.
        name = claim.resource_claim_name or made.get(claim.name)
        if name:
            yield name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


def volume_secrets(spec: PersistentVolumeSpec, claim_namespace: str) -> Iterator[_Name]:
    """Return the secrets that a node needs for a volume: namespace and name."""
    if spec.azure_file is not None:
        if spec.azure_file.secret_name:
            yield spec.azure_file.secret_namespace or claim_namespace, spec.azure_file.secret_name
    elif spec.csi is not None:
        # Secrets for controllers are not needed by the node.
        csi = spec.csi
        for ref in (csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref):
            if ref is not None and ref.name:
                yield ref.namespace, ref.name
    else:
        for old in (spec.cephfs, spec.flex_volume, spec.rbd, spec.scale_io, spec.iscsi):
            if old is not None and old.secret_ref is not None and old.secret_ref.name:
                yield old.secret_ref.namespace or claim_namespace, old.secret_ref.name
        for other in (spec.cinder, spec.storageos):
            if other is not None and other.secret_ref is not None and other.secret_ref.name:
                yield other.secret_ref.namespace, other.secret_ref.name
