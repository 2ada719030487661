"""How a pod appears on its host and in DNS: ports, names, nameservers, user namespaces."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import HostAlias, PodSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_subdomain, dns_subdomain_with_underscore, size
from nodeward.validation.checks import (
    check_each,
    check_form,
    check_present,
    check_size,
    check_subdomain,
    check_unset,
)
from nodeward.validation.meta.addresses import validate_ip
from nodeward.validation.pod.options import PodOptions, containers_with_path

_NAMESERVERS: Final = 3
_SEARCHES: Final = 32
_SEARCH_CHARACTERS: Final = 2048
_HOSTNAME_LIMIT: Final = 64
_WITHOUT_HOST_USERS: Final = "when `hostUsers` is false"


def validate_host_ports(spec: PodSpec, path: FieldPath, *, is_pod: bool) -> list[FieldError]:
    """On the host's network a container's port is the host's port. A template may leave the host's out."""
    errors: list[FieldError] = []
    for i, container in enumerate(spec.containers):
        for j, port in enumerate(container.ports):
            if (is_pod or port.host_port) and port.host_port != port.container_port:
                at = path.child("containers").index(i).child("ports").index(j).child("hostPort")
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(at, port.host_port, detail))
    return errors


def validate_dns(spec: PodSpec, path: FieldPath, options: PodOptions) -> list[FieldError]:
    config = spec.dns_config
    if config is None:
        if spec.dns_policy == "None":
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        return []
    if spec.dns_policy == "None" and not config.nameservers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(path.child("nameservers"), detail)]
    errors: list[FieldError] = []
    if len(config.nameservers) > _NAMESERVERS:
        detail = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(invalid(path.child("nameservers"), config.nameservers, detail))
    for i, nameserver in enumerate(config.nameservers):
        errors += validate_ip(nameserver, path.child("nameservers").index(i), options.ctx)
    at = path.child("searches")
    if len(config.searches) > _SEARCHES:
        detail = f"must not have more than {_SEARCHES} search paths"
        errors.append(invalid(at, config.searches, detail))
    if size(" ".join(config.searches)) > _SEARCH_CHARACTERS:
        detail = (
            f"must not have more than {_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        )
        errors.append(invalid(at, config.searches, detail))
    for i, search in enumerate(config.searches):
        if search != ".":
            name = search.removesuffix(".")
            errors += check_form(name, at.index(i), dns_subdomain_with_underscore)
    for i, option in enumerate(config.options):
        errors += check_present(option.name, path.child("options").index(i), "must not be empty")
    return errors


def validate_host_aliases(aliases: list[HostAlias], path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, alias in enumerate(aliases):
        at = path.index(i)
        errors += validate_ip(alias.ip, at.child("ip"), options.ctx)
        errors += check_each(alias.hostnames, at.child("hostnames"), check_subdomain)
    return errors


def validate_host_users(spec: PodSpec, path: FieldPath, options: PodOptions) -> list[FieldError]:
    """A pod with its own user namespace shares nothing else with the host."""
    is_on_network = spec.host_network and not options.user_namespaces_with_host_network()
    errors = check_unset(
        path, _WITHOUT_HOST_USERS, hostNetwork=is_on_network, HostPID=spec.host_pid, HostIPC=spec.host_ipc
    )
    devices = [at for container, at in containers_with_path(spec, path) if container.volume_devices]
    if devices and not options.user_namespaces_with_devices():
        errors += [forbidden(at.child("volumeDevices"), _WITHOUT_HOST_USERS) for at in devices]
    return errors


def validate_hostname_override(spec: PodSpec, name: str, path: FieldPath) -> list[FieldError]:
    at = path.child("hostnameOverride")
    errors: list[FieldError] = []
    if spec.set_hostname_as_fqdn:
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.host_network:
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    errors += check_size(name, at, _HOSTNAME_LIMIT)
    return errors + [invalid(at, name, fault) for fault in dns_subdomain(name)]
