"""Endpoint slices: discovery.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    KubeStruct,
    OneOf,
    RequiredList,
    WithRequiredLists,
    always,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject


class EndpointConditions(KubeStruct):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForNode(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")


class ForZone(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")


class EndpointHints(KubeStruct):
    for_zones: list[ForZone] = []
    for_nodes: list[ForNode] = []


class Endpoint(WithRequiredLists):
    addresses: Annotated[RequiredList[str], SET, REQUIRED] = required_list()
    conditions: EndpointConditions = nested(EndpointConditions)
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    deprecated_topology: dict[str, str] = {}
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str | None = None
    protocol: Annotated[str | None, OneOf("SCTP", "TCP", "UDP")] = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(KubeObject, WithRequiredLists):
    address_type: Annotated[str, OneOf("FQDN", "IPv4", "IPv6"), REQUIRED] = always("")
    endpoints: RequiredList[Endpoint] = required_list()
    ports: RequiredList[EndpointPort] = required_list()
