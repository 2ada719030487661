"""Discovery: versions, groups and resources, which clients read first.

Called by `apiserver/documents.py`. Takes a `Scheme`, which may be a part of everything (an older version is being
emulated), and returns encoded documents. There are two forms of the same facts: the legacy ones, one request for each
group and version, and the aggregated one, two requests for everything. Both list resources by name, subresources after
their parent. All functions here are pure; the caller keeps the documents.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from nodeward.api.scheme import Kind, Scheme, Subresource

JSON = "application/json"
#: The versions of the group `apidiscovery.k8s.io`.
AggregatedVersion: TypeAlias = Literal["v2", "v2beta1"]

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}
_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class DiscoveryDocument:
    """An answer that stays the same as long as the server runs."""

    body: bytes
    content_type: str = JSON
    #: as it stands in the header, quotes and all; "" when the answer has none
    etag: str = ""


def _document(content: dict[str, Any]) -> DiscoveryDocument:
    return DiscoveryDocument(msgspec.json.encode(content))


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Return the hash that changes when objects of the kind are stored in another version."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Rank a version: stable before beta before alpha, then the higher number."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], int(major), int(minor or 0), version)


def group_versions(scheme: Scheme, group: str) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    versions = dict.fromkeys(kind.version for kind in scheme.kinds if kind.group == group)
    return sorted(versions, key=_version_rank, reverse=True)


def _named_groups(scheme: Scheme) -> list[str]:
    return [group for group in scheme.groups() if group]


def _kinds(scheme: Scheme, group: str, version: str) -> list[Kind]:
    found = [kind for kind in scheme.kinds if kind.group == group and kind.version == version]
    return sorted(found, key=lambda kind: kind.resource)


def _subresources(kind: Kind) -> list[Subresource]:
    return sorted(kind.subresources, key=lambda subresource: subresource.name)


# -- the legacy form


def api_versions(server_address: str) -> DiscoveryDocument:
    """Make `/api`. The address (host:port) is where clients reach this server."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
    return _document({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})


def _group(scheme: Scheme, group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in group_versions(scheme, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_group_list(scheme: Scheme) -> DiscoveryDocument:
    """Make `/apis`."""
    groups = [_group(scheme, group) for group in _named_groups(scheme)]
    return _document({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})


def api_group(scheme: Scheme, group: str) -> DiscoveryDocument | None:
    """Make `/apis/<group>`; None if the group is not served."""
    if group not in _named_groups(scheme):
        return None
    return _document({"kind": "APIGroup", "apiVersion": "v1", **_group(scheme, group)})


def api_resource_list(scheme: Scheme, group: str, version: str) -> DiscoveryDocument | None:
    """Make `/api/v1` or `/apis/<group>/<version>`; None if there is no such version."""
    kinds = _kinds(scheme, group, version)
    if not kinds:
        return None
    answer: dict[str, Any] = {"kind": "APIResourceList"}
    if group:  # the core group's answer is older than this field
        answer["apiVersion"] = "v1"
    answer["groupVersion"] = kinds[0].api_version
    answer["resources"] = [resource for kind in kinds for resource in _legacy_resources(scheme, kind)]
    return _document(answer)


def _legacy_resources(scheme: Scheme, kind: Kind) -> Iterator[dict[str, Any]]:
    resource: dict[str, Any] = {
        "name": kind.resource,
        "singularName": kind.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.name,
        "verbs": kind.verbs,
    }
    resource |= _names(kind)
    if kind.is_stored and "create" in kind.verbs:
        stored = scheme.by_resource("", "v1", kind.stored_as) if kind.stored_as else None
        stored = stored or kind
        resource["storageVersionHash"] = storage_version_hash(stored.group, stored.version, stored.name)
    yield resource
    for subresource in _subresources(kind):
        entry = {
            "name": f"{kind.resource}/{subresource.name}",
            "singularName": "",
            "namespaced": kind.is_namespaced,
        }
        if subresource.group:
            entry |= {"group": subresource.group, "version": subresource.version}
        yield entry | {"kind": subresource.kind or kind.name, "verbs": subresource.verbs}


def _names(kind: Kind) -> dict[str, tuple[str, ...]]:
    names = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: value for key, value in names.items() if value}


# -- the aggregated form


def aggregated_content_type(version: AggregatedVersion = "v2") -> str:
    return f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def aggregated_core(scheme: Scheme, version: AggregatedVersion = "v2") -> DiscoveryDocument:
    """Make the aggregated `/api`: the core group."""
    return _aggregated(scheme, [""], version)


def aggregated_groups(scheme: Scheme, version: AggregatedVersion = "v2") -> DiscoveryDocument:
    """Make the aggregated `/apis`: every other group."""
    return _aggregated(scheme, _named_groups(scheme), version)


def _aggregated(scheme: Scheme, groups: list[str], version: AggregatedVersion) -> DiscoveryDocument:
    answer = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_aggregated_group(scheme, group) for group in groups],
    }
    body = msgspec.json.encode(answer)
    etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    return DiscoveryDocument(body, aggregated_content_type(version), etag)


def _aggregated_group(scheme: Scheme, group: str) -> dict[str, Any]:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {
                "version": version,
                "resources": [_aggregated_resource(kind) for kind in _kinds(scheme, group, version)],
                "freshness": "Current",
            }
            for version in group_versions(scheme, group)
        ],
    }


def _response_kind(group: str, version: str, kind: str) -> dict[str, str]:
    """Return the kind of the answer; group and version only where they differ from the resource's."""
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "resource": kind.resource,
        "responseKind": _response_kind("", "", kind.name),
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    }
    resource |= _names(kind)
    subresources = [
        {
            "subresource": sub.name,
            "responseKind": _response_kind(
                sub.group, sub.version if sub.group else "", sub.kind or kind.name
            ),
            "verbs": sub.verbs,
        }
        for sub in _subresources(kind)
    ]
    if subresources:
        resource["subresources"] = subresources
    return resource


# -- the version


@functools.cache
def this_platform() -> str:
    """Return the platform, as `linux/amd64`."""
    machine = platform.machine()
    return f"{sys.platform}/{_MACHINES.get(machine, machine)}"


def version_info(kubernetes_version: str) -> dict[str, str]:
    """Make `/version` for, say, "1.37" or "1.37.2".

    Clients compare major, minor and gitVersion. The keys about a Go build must be there and say that there was none.
    """
    major, minor, patch = [*kubernetes_version.removeprefix("v").split("."), "0"][:3]
    info = {"major": major, "minor": minor}
    if (int(major), int(minor)) >= (1, 33):  # older clients never saw these
        info |= {
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(int(minor) - 1),
        }
    return info | {
        "gitVersion": f"v{major}.{minor}.{patch}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": platform.python_implementation().lower(),
        "platform": this_platform(),
    }
