"""How the API server reaches a node's kubelet: where it listens, and as whom it is spoken to."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.api.meta import Status
from nodeward.base.errors import ConfigError

#: Whose certificate the API server shows to kubelets.
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
USUAL_PORT: Final = 10250
#: Addresses first, as kubeadm has kube-apiserver do it: names of nodes are rarely known to a resolver.
PREFERRED_ADDRESSES: Final = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")


@dataclass(frozen=True, slots=True)
class KubeletAccess:
    """The way to kubelets. Without `tls` there is none."""

    tls: ssl.SSLContext | None = None
    #: where nodes listen that do not listen at their own address; None: go by the node
    resolve: Callable[[Node], tuple[str, int] | None] | None = None
    preferred: tuple[str, ...] = PREFERRED_ADDRESSES
    #: told of every WebSocket to a kubelet: what for, and whether it went through or was translated
    streamed: Callable[[str, str], None] = lambda subresource, how: None

    def address(self, node: Node) -> tuple[str, int]:
        """Host and port; raises when the node names none."""
        known = self.resolve(node) if self.resolve is not None else None
        if known is not None:
            return known
        port = node.status.daemon_endpoints.kubelet_endpoint.port or USUAL_PORT
        for wanted in self.preferred:
            for each in node.status.addresses:
                if each.type == wanted:
                    return each.address, port
        addresses = " ".join(f"{{{each.type} {each.address}}}" for each in node.status.addresses)
        raise unreachable(f"no preferred addresses found; known addresses: [{addresses}]")


def unreachable(message: str) -> ApiError:
    """What is said when a node cannot be asked: a failure without a reason, as kube-apiserver's."""
    return ApiError(Status(kind="Status", api_version="v1", status="Failure", message=message, code=500))


def kubelet_client_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS towards kubelets: our certificate, and whose theirs must be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot speak to kubelets with {certificate}: {error}") from error
    return context
