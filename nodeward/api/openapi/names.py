"""Names in OpenAPI: definitions by the Go package they come from upstream, operations by their path.

Clients know these names: `kubectl` finds kinds by the group-version-kind beside a definition, generated clients by the
names themselves.
"""

from __future__ import annotations

import functools

import msgspec

from nodeward.api.scheme import Kind

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"

# Definitions that no struct stands for.
TIME = f"{_META}.Time"
MICRO_TIME = f"{_META}.MicroTime"
FIELDS = f"{_META}.FieldsV1"
PATCH = f"{_META}.Patch"
WATCH_EVENT = f"{_META}.WatchEvent"
DELETE_OPTIONS = f"{_META}.DeleteOptions"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"

#: Modules whose definitions have another package upstream; custom resources use their reversed group.
_ELSEWHERE = {"meta": _META, "readiness_v1alpha1": "io.x-k8s.node.readiness.v1alpha1"}


def module(struct: type[msgspec.Struct]) -> str:
    """Return the module or package below `nodeward.api` that describes the struct: `core_v1` or `meta`."""
    return struct.__module__.split(".")[2]


def package(home: str) -> str:
    """Return `io.k8s.api.core.v1`: modules are called `<group>_<version>`, or are packages called so."""
    group, _, version = home.rpartition("_")
    return _ELSEWHERE.get(home) or f"io.k8s.api.{group}.{version}"


@functools.cache
def definition_name(struct: type[msgspec.Struct]) -> str:
    """Return the definition's name: `io.k8s.api.core.v1.Pod`."""
    return f"{package(module(struct))}.{struct.__name__}"


def list_definition_name(kind: Kind) -> str:
    return f"{definition_name(kind.type)}List"


def _group_words(group: str) -> list[str]:
    return (group.removesuffix(".k8s.io") or "core").split(".")


def operation_group(group: str, version: str) -> str:
    """Return the group as it is in an operation's id: `RbacAuthorizationV1`."""
    return "".join(word.capitalize() for word in [*_group_words(group), version])


def tag(group: str, version: str) -> str:
    """Return the tag: `rbacAuthorization_v1`."""
    first, *rest = _group_words(group)
    return f"{first}{''.join(word.capitalize() for word in rest)}_{version}"
