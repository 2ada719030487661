"""What a pod's sandbox is to be like: names, network, namespaces, DNS, group.

In go the pod and the node's settings, out comes CRI's `PodSandboxConfig`, or a `SandboxRefused` for what this agent
cannot do and must not ignore.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nodeward.api.core_v1.container import Container, EphemeralContainer, SeccompProfile, SELinuxOptions
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.runtime.cri.cgroups import pod_group
from nodeward.kubelet.runtime.cri.dns import NodeDns, dns_config
from nodeward.kubelet.runtime.cri.labels import pod_labels
from nodeward.kubelet.runtime.cri.messages import CONTAINER, NODE, POD, message

LOG: Final = logging.getLogger(__name__)

_PROTOCOLS: Final = {"": 0, "TCP": 0, "UDP": 1, "SCTP": 2}
_PROFILES: Final = {"RuntimeDefault": 0, "Unconfined": 1, "Localhost": 2}
_LONGEST_HOSTNAME: Final = 63


class SandboxRefused(WorldError):
    """The pod asks for something that cannot be given."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What is the same for all pods of a node."""

    cgroup_root: str = "kubepods"
    #: "systemd" or "cgroupfs"; empty: as the runtime has it
    cgroup_driver: str = ""
    dns: NodeDns = field(default_factory=NodeDns)
    #: bytes; 0: not known
    memory_capacity: int = 0
    #: where the files are that Localhost seccomp profiles name
    seccomp_root: str = "/var/lib/kubelet/seccomp"

    @classmethod
    def of(cls, settings: KubeletSettings, memory_capacity: int) -> NodeSettings:
        """As a kubelet's configuration says. Reads `resolvConf`; without one, pods that need it have no servers."""
        try:
            resolver = Path(settings.resolv_conf).read_text() if settings.resolv_conf else ""
        except OSError as error:
            LOG.warning("resolvConf %s cannot be read: %s", settings.resolv_conf, error.strerror)
            resolver = ""
        dns = NodeDns.read(resolver, settings.cluster_dns, settings.cluster_domain)
        return cls(dns=dns, memory_capacity=memory_capacity)


def sandbox_config(
    pod: Pod, settings: NodeSettings, *, attempt: int, log_directory: str, is_on_host_network: bool
) -> Any:
    """The whole configuration. Raises `SandboxRefused`."""
    spec, meta = pod.spec, pod.metadata
    if spec.host_users is False:
        raise SandboxRefused("hostUsers: false is not supported: this agent cannot set up user namespaces")
    if spec.runtime_class_name:
        raise SandboxRefused(f'RuntimeClass "{spec.runtime_class_name}" is not supported by this agent')
    config = message("PodSandboxConfig")(
        metadata={"name": meta.name, "uid": meta.uid, "namespace": meta.namespace, "attempt": attempt},
        # A sandbox in the node's network has the node's name, too; a runtime may fail to set another.
        hostname="" if is_on_host_network else hostname(pod),
        log_directory=log_directory,
        labels=pod_labels(pod),
        annotations=meta.annotations,
        linux={
            "cgroup_parent": pod_group(pod, settings.cgroup_root, settings.cgroup_driver),
            "security_context": _security(pod, settings, is_on_host_network),
        },
    )
    dns = dns_config(pod, settings.dns)
    if dns is not None:
        config.dns_config.CopyFrom(dns)
    if spec.security_context is not None:
        for each in spec.security_context.sysctls:
            config.linux.sysctls[each.name] = each.value
    if not is_on_host_network:
        for container in containers_of(pod):
            for port in container.ports:
                if port.host_port:
                    config.port_mappings.add(
                        protocol=_PROTOCOLS[port.protocol],
                        container_port=port.container_port,
                        host_port=port.host_port,
                        host_ip=port.host_ip,
                    )
    return config


def containers_of(pod: Pod) -> Iterator[Container | EphemeralContainer]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers
    yield from pod.spec.ephemeral_containers


def hostname(pod: Pod) -> str:
    """The pod's own name of itself."""
    if pod.spec.hostname_override:
        return pod.spec.hostname_override
    return pod.spec.hostname or pod.metadata.name[:_LONGEST_HOSTNAME].rstrip("-.")


def namespaces(pod: Pod, is_on_host_network: bool) -> Any:
    """`NamespaceOption`: what the pod's containers share, with each other or with the node."""
    spec = pod.spec
    pid = NODE if spec.host_pid else POD if spec.share_process_namespace else CONTAINER
    return message("NamespaceOption")(
        network=NODE if is_on_host_network else POD, pid=pid, ipc=NODE if spec.host_ipc else POD
    )


def seccomp(profile: SeccompProfile, root: str) -> Any:
    """`SecurityProfile`"""
    return message("SecurityProfile")(
        profile_type=_PROFILES[profile.type],
        localhost_ref=f"{root}/{profile.localhost_profile}" if profile.localhost_profile else "",
    )


def selinux(options: SELinuxOptions) -> Any:
    """`SELinuxOption`"""
    return message("SELinuxOption")(
        user=options.user, role=options.role, type=options.type, level=options.level
    )


def _security(pod: Pod, settings: NodeSettings, is_on_host_network: bool) -> Any:
    is_privileged = any(
        each.security_context is not None and each.security_context.privileged for each in containers_of(pod)
    )
    made = message("LinuxSandboxSecurityContext")(
        namespace_options=namespaces(pod, is_on_host_network), privileged=is_privileged
    )
    context = pod.spec.security_context
    if context is not None:
        if context.run_as_user is not None:
            made.run_as_user.value = context.run_as_user
            if context.run_as_group is not None:
                made.run_as_group.value = context.run_as_group
        if context.se_linux_options is not None:
            made.selinux_options.CopyFrom(selinux(context.se_linux_options))
        if context.seccomp_profile is not None and not is_privileged:
            made.seccomp.CopyFrom(seccomp(context.seccomp_profile, settings.seccomp_root))
        made.supplemental_groups.extend(groups(pod))
    return made


def groups(pod: Pod) -> list[int]:
    """The groups all processes of the pod are in, beside their own."""
    context = pod.spec.security_context
    if context is None:
        return []
    more = [] if context.fs_group is None else [context.fs_group]
    return [*context.supplemental_groups, *(each for each in more if each not in context.supplemental_groups)]
