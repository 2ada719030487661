"""The messages between a kubelet and DRA drivers: how a driver registers, and prepares and unprepares claims.

Read by the kubelet (`kubelet.dra.grpc_plugin`) and by the driver kit (`dra.node_server`), which are the two ends of the
same sockets. The tables were written down from the published protocols; both versions of the DRA service have the same
messages, of which the older has no `share_id`. A map is the repeated message it is on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodeward.base.protobuf import message_classes

_MESSAGES: Final[dict[str, tuple[str, ...]]] = {
    # registration
    "InfoRequest": (),
    "PluginInfo": ("type=1 string", "name=2 string", "endpoint=3 string", "supported_versions=4 *string"),
    "RegistrationStatus": ("plugin_registered=1 bool", "error=2 string"),
    "RegistrationStatusResponse": (),
    # claims
    "Claim": ("namespace=1 string", "uid=2 string", "name=3 string"),
    "Device": (
        "request_names=1 *string",
        "pool_name=2 string",
        "device_name=3 string",
        "cdi_device_ids=4 *string",
        "share_id=5 |string",
    ),
    "NodePrepareResourcesRequest": ("claims=1 *Claim",),
    "NodePrepareResourceResponse": ("devices=1 *Device", "error=2 string"),
    "PreparedEntry": ("key=1 string", "value=2 NodePrepareResourceResponse"),
    "NodePrepareResourcesResponse": ("claims=1 *PreparedEntry",),
    "NodeUnprepareResourcesRequest": ("claims=1 *Claim",),
    "NodeUnprepareResourceResponse": ("error=1 string",),
    "UnpreparedEntry": ("key=1 string", "value=2 NodeUnprepareResourceResponse"),
    "NodeUnprepareResourcesResponse": ("claims=1 *UnpreparedEntry",),
}

REGISTRATION_SERVICE: Final = "pluginregistration.Registration"
DRA_PLUGIN_TYPE: Final = "DRAPlugin"
#: gRPC services by the names under which drivers offer them.
DRA_SERVICES: Final[Mapping[str, str]] = {
    "v1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}

_CLASSES: Final = message_classes("dra_plugin", _MESSAGES)


def dra_message(name: str) -> Any:
    """Return the class of a message. It has no static type (it is made from the table), hence Any."""
    return _CLASSES[name]
