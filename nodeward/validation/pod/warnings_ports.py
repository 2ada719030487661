"""Ports of a pod that get in each other's way without being forbidden."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import ContainerPort
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.fielderror import quote
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.pod.options import containers_with_path

#: Unlike upstream: with how many others one port, or one file, is reported to clash; all would be a quadratic number.
LISTED: Final = 20


def port_warnings(spec: PodSpec, path: FieldPath) -> list[str]:
    ports = [
        (port, at.child("ports").index(i))
        for container, at in containers_with_path(spec, path)
        for i, port in enumerate(container.ports)
    ]
    return _same_numbers(ports) + _same_names(ports) if ports else []


def _same_numbers(ports: list[tuple[ContainerPort, FieldPath]]) -> list[str]:
    warnings: list[str] = []
    known: dict[tuple[int, str], list[tuple[ContainerPort, FieldPath]]] = {}
    for port, at in ports:
        if port.host_ip and not port.host_port:
            shown = (
                f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
                f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
            )
            warnings.append(f"{at}: hostIP set without hostPort: {shown}")
        others = known.setdefault((port.container_port, port.protocol), [])
        for other, there in others[:LISTED]:
            if what := _conflict(port, other):
                warnings.append(f"{at}: {what} port definition with {there}")
        others.append((port, at))
    return warnings


def _conflict(port: ContainerPort, other: ContainerPort) -> str:
    if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
        return "duplicate"
    if not port.host_port or not other.host_port:
        return "overlapping"
    if port.host_port == other.host_port and bool(port.host_ip) != bool(other.host_ip):
        return "dangerously ambiguous"
    return ""


def _same_names(ports: list[tuple[ContainerPort, FieldPath]]) -> list[str]:
    warnings: list[str] = []
    first: dict[str, FieldPath] = {}
    for port, at in ports:
        if not port.name:
            continue
        if port.name in first:
            other = first[port.name]
            warnings.append(
                f"{at}: duplicate port name {quote(port.name)} with {other}, services and probes that select "
                f"ports by name will use {other}"
            )
        else:
            first[port.name] = at
    return warnings
