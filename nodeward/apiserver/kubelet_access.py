"""How the API server connects to a node's kubelet: address, port, TLS and client certificate.

Used by the subresources log, exec, attach and portforward of pods, and proxy of nodes.
"""

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

#: The user name in the client certificate shown to kubelets.
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
USUAL_PORT: Final = 10250
#: Address types in order of preference, as kubeadm configures kube-apiserver: node names are rarely in DNS.
PREFERRED_ADDRESSES: Final = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")


@dataclass(frozen=True, slots=True)
class KubeletAccess:
    """Addresses and TLS of kubelets. Without `tls` kubelets cannot be reached."""

    tls: ssl.SSLContext | None = None
    #: where nodes listen that do not listen at their own address; None: go by the node
    resolve: Callable[[Node], tuple[str, int] | None] | None = None
    preferred: tuple[str, ...] = PREFERRED_ADDRESSES
    #: called for every WebSocket to a kubelet: the subresource, and whether it was passed on or translated
    streamed: Callable[[str, str], None] = lambda subresource, how: None

    def address(self, node: Node) -> tuple[str, int]:
        """Return host and port of a node's kubelet; raises when the node has no address."""
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
    """Make the error for a node that cannot be reached: a failure without a reason, as kube-apiserver's."""
    return ApiError(Status(kind="Status", api_version="v1", status="Failure", message=message, code=500))


def kubelet_client_context(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """Make the TLS context towards kubelets: our client certificate, and the authority of theirs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot speak to kubelets with {certificate}: {error}") from error
    return context
