"""Whom a pod asks for addresses: the cluster, the node's own servers, or those its spec names.

In go the pod and what the node knows, out comes CRI's `DNSConfig`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.cri.messages import message


@dataclass(frozen=True, slots=True)
class NodeDns:
    """The node's own resolver (`resolv.conf`), and the cluster's if there is one."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    #: for pods with the policy ClusterFirst; empty: they get the node's
    cluster_servers: tuple[str, ...] = ()
    cluster_domain: str = ""

    @classmethod
    def read(cls, resolv_conf: str, cluster_servers: Iterable[str] = (), cluster_domain: str = "") -> NodeDns:
        """From the text of a `resolv.conf`; of several `search` lines the last counts."""
        servers: list[str] = []
        searches: tuple[str, ...] = ()
        options: list[str] = []
        for line in resolv_conf.splitlines():
            word, *values = line.split("#", 1)[0].split() or [""]
            if word == "nameserver":
                servers += values[:1]
            elif word == "search":
                searches = tuple(values)
            elif word == "options":
                options += values
        return cls(tuple(servers), searches, tuple(options), tuple(cluster_servers), cluster_domain)


def dns_config(pod: Pod, node: NodeDns) -> Any | None:
    """`DNSConfig`, or None: as the node has it."""
    spec = pod.spec
    policy = spec.dns_policy or "ClusterFirst"
    is_of_cluster = policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not spec.host_network
    )
    searches: list[str] = []
    if policy == "None":
        servers, options = [], []
    elif is_of_cluster and node.cluster_servers:
        servers, options = list(node.cluster_servers), ["ndots:5"]
        domain = node.cluster_domain
        if domain:
            searches = [f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain]
        searches += [each for each in node.searches if each not in searches]
    elif spec.dns_config is None:
        return None
    else:
        servers, searches, options = list(node.servers), list(node.searches), list(node.options)
    own = spec.dns_config
    if own is not None:
        servers += [each for each in own.nameservers if each not in servers]
        searches += [each for each in own.searches if each not in searches]
        named = {each.name for each in own.options}
        options = [each for each in options if each.partition(":")[0] not in named]
        options += [each.name if each.value is None else f"{each.name}:{each.value}" for each in own.options]
    return message("DNSConfig")(servers=servers, searches=searches, options=options)
