"""What changed between two specs, as the API server of Kubernetes shows it when it refuses the change.

It prints both as JSON under the names its source code has for the fields (`DNSPolicy`, not `dnsPolicy`), every field,
nothing left out, and shows the lines that differ with three around them.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.volume_sources import (
    AzureDiskVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
)
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.base.quantity import Quantity

#: Names that are not simply the JSON name with a capital.
_NAMES: Final = {
    "apiGroup": "APIGroup",
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
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
    "iqn": "IQN",
    "iscsi": "ISCSI",
    "iscsiInterface": "ISCSIInterface",
    "nfs": "NFS",
    "os": "OS",
    "pdName": "PDName",
    "rbd": "RBD",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "serviceAccount": "DeprecatedServiceAccount",
    "sslEnabled": "SSLEnabled",
    "storageos": "StorageOS",
    "tcpSocket": "TCPSocket",
    "tty": "TTY",
    "wwids": "WWIDs",
}
_OWN_NAMES: Final[dict[type, dict[str, str]]] = {
    AzureDiskVolumeSource: {"diskURI": "DataDiskURI"},
    GlusterfsVolumeSource: {"endpoints": "EndpointsName"},
    ISCSIVolumeSource: {"chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth"},
    RBDVolumeSource: {
        "monitors": "CephMonitors",
        "image": "RBDImage",
        "pool": "RBDPool",
        "user": "RadosUser",
    },
}


def spec_diff(old: msgspec.Struct, new: msgspec.Struct) -> str:
    """A unified diff without file names; "" if nothing differs."""
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3)
    return "".join(list(lines)[2:])


def _lines(value: msgspec.Struct) -> list[str]:
    text = json.dumps(_plain(value), indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]


def _plain(value: Any) -> Any:
    if isinstance(value, LabelSelector):  # shared types keep their JSON names
        return msgspec.to_builtins(value)
    if isinstance(value, msgspec.Struct):
        own = _OWN_NAMES.get(type(value), {})
        plain: dict[str, Any] = {}
        for field in msgspec.structs.fields(value):
            name, inner = field.encode_name, getattr(value, field.name)
            if isinstance(inner, ObjectMeta):
                plain |= msgspec.to_builtins(inner)
            else:
                plain[own.get(name) or _NAMES.get(name) or name[0].upper() + name[1:]] = _plain(inner)
        return plain
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, list):
        return [_plain(item) for item in value] or None
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)} or None
    return value
