"""Struct values in error messages, in the form in which a Go server shows them: its internal types have no JSON names.

Upstream validates its internal types, and an error shows such a value with the names of the Go fields, every field of
it, and null for what is not set. Types of meta/v1 are shared by all versions and keep their JSON names.
`nodeward.api.errors` calls this for each field error it turns into a cause.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import msgspec

from nodeward.api import meta
from nodeward.api.core_v1.storage import (
    GlusterfsPersistentVolumeSource,
    ISCSIPersistentVolumeSource,
    RBDPersistentVolumeSource,
)
from nodeward.api.core_v1.volume_sources import (
    AzureDiskVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
)
from nodeward.api.fields import KubeTop, NullList, required_lists
from nodeward.base.quantity import Quantity

#: JSON names whose Go name is more than a capital letter at the beginning.
_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiGroups": "APIGroups",
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cel": "CEL",
    "cephfs": "CephFS",
    "csi": "CSI",
    "dnsConfig": "DNSConfig",
    "dnsPolicy": "DNSPolicy",
    "fc": "FC",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk",
    "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "grpc": "GRPC",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "ip": "IP",
    "ips": "IPs",
    "iqn": "IQN",
    "iscsi": "ISCSI",
    "iscsiInterface": "ISCSIInterface",
    "nfs": "NFS",
    "os": "OS",
    "pdName": "PDName",
    "qosClass": "QOSClass",
    "rbd": "RBD",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "serviceAccount": "DeprecatedServiceAccount",
    "sslEnabled": "SSLEnabled",
    "storageos": "StorageOS",
    "tcpSocket": "TCPSocket",
    "ttlSecondsAfterFinished": "TTLSecondsAfterFinished",
    "tty": "TTY",
    "uid": "UID",
    "wwids": "WWIDs",
}
_ISCSI: Final = {"chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth"}
_RBD: Final = {"monitors": "CephMonitors", "image": "RBDImage", "pool": "RBDPool", "user": "RadosUser"}
_OWN_NAMES: Final[dict[type, dict[str, str]]] = {
    AzureDiskVolumeSource: {"diskURI": "DataDiskURI"},
    GlusterfsVolumeSource: {"endpoints": "EndpointsName"},
    GlusterfsPersistentVolumeSource: {"endpoints": "EndpointsName"},
    ISCSIVolumeSource: _ISCSI,
    ISCSIPersistentVolumeSource: _ISCSI,
    RBDVolumeSource: _RBD,
    RBDPersistentVolumeSource: _RBD,
}
_PLAIN: Final = meta.ObjectMeta.__module__


def go_name(struct: type[msgspec.Struct], attribute: str) -> str:
    """Return the Go name of a field of a struct."""
    name = next(info.encode_name for info in msgspec.structs.fields(struct) if info.name == attribute)
    return _go_name(struct, name)


def _go_name(struct: type, name: str) -> str:
    return _OWN_NAMES.get(struct, {}).get(name) or _NAMES.get(name) or name[0].upper() + name[1:]


def go_form(value: Any) -> Any:
    """Convert a struct to plain values under Go names; other values stay, with the keys of plain maps sorted."""
    if isinstance(value, NullList) and not value:
        return None
    if isinstance(value, dict) and all(isinstance(inner, str | Quantity) for inner in value.values()):
        return {key: value[key] for key in sorted(value)}  # labels, resources: maps in Go too
    if isinstance(value, list) and any(isinstance(item, msgspec.Struct) for item in value):
        return [go_form(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return value
    if type(value).__module__ == _PLAIN:
        return msgspec.to_builtins(value, enc_hook=_builtin, order="deterministic")
    lists = required_lists(type(value))
    tree: dict[str, Any] = {}
    for attribute, name, shown in _fields(type(value)):
        inner = getattr(value, attribute)
        if isinstance(inner, meta.ObjectMeta):  # embedded in Go
            tree.update(go_form(inner))
        elif attribute in lists and not inner and not isinstance(inner, NullList):
            tree[shown] = []
        elif name not in ("kind", "apiVersion") or not isinstance(value, KubeTop):
            tree[shown] = _inner(inner)
    return tree


@functools.cache
def _fields(struct: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    """Return the fields of a struct: their names here, in JSON and in Go."""
    found = msgspec.structs.fields(struct)
    return [(info.name, info.encode_name, _go_name(struct, info.encode_name)) for info in found]


def _builtin(value: Any) -> Any:
    """Return a value that is no plain one in a form JSON has: the fields of a manager as a tree, all else as text."""
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else str(value)


def _inner(value: Any) -> Any:
    if isinstance(value, list):
        return [_inner(item) for item in value] or None
    if isinstance(value, NullList) and not value:
        return None
    if isinstance(value, dict):
        return {key: _inner(value[key]) for key in sorted(value)} or None
    return str(value) if isinstance(value, Quantity) else go_form(value)
