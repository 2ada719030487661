"""What a server serves, as it says itself: its groups, their versions, and the resources in each.

Called by `controllers.garbage_kinds` and `client`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec


class ApiResource(msgspec.Struct, rename="camel", kw_only=True):
    """One line of discovery."""

    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    verbs: list[str] = []
    short_names: list[str] = []
    categories: list[str] = []
    group: str = ""
    version: str = ""


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_GroupVersion]


class _GroupList(msgspec.Struct):
    groups: list[_Group]


class _ResourceList(msgspec.Struct):
    resources: list[ApiResource]


async def discover(read: Callable[[str, type[Any]], Awaitable[Any]]) -> Sequence[ApiResource]:
    """Return every resource, group by group; `read` fetches a path and reads it as a type."""
    groups: _GroupList = await read("/apis", _GroupList)
    versions = [("", "v1")]
    for group in groups.groups:
        for version in group.versions:
            name, _, short = version.group_version.rpartition("/")
            versions.append((name, short))
    found: list[ApiResource] = []
    for name, short in versions:
        path = f"/apis/{name}/{short}" if name else f"/api/{short}"
        listed: _ResourceList = await read(path, _ResourceList)
        for resource in listed.resources:
            # Named only where it differs from where the resource is served: pods/eviction is policy/v1.
            resource.group = resource.group or name
            resource.version = resource.version or short
            found.append(resource)
    return found
