"""Shared by commands that read a whole cluster: listing a kind, and text in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.machinery.client import Client

K = TypeVar("K", bound=KubeObject)


async def all_of(client: Client, kind: type[K], namespace: str = "") -> list[K]:
    """List every object of a kind, page by page; without a namespace, those of all."""
    return [obj async for page in client.list_pages(kind, namespace) for obj in page.items]


async def some_of(
    client: Client, kind: type[K], notes: list[str], instead: str, namespace: str = ""
) -> list[K]:
    """List every object of a kind that may not be served or readable; if so, add a note that ends with `instead`."""
    try:
        return await all_of(client, kind, namespace)
    except ApiError as error:
        if error.code not in (403, 404):
            raise
        why = "may not be listed" if error.code == 403 else "are not served"
        notes.append(f"{client.kind_of(kind).qualified_resource} {why}: {instead}")
        return []


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """Format rows of cells as text, each column as wide as its widest cell."""
    rows = [tuple(line) for line in lines]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
