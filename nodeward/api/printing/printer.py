"""The interface of printers: the columns of a table, and how an object becomes one row of cells.

A printer knows one kind and nothing of HTTP or JSON. Cells are in the order of the columns; numbers stay numbers.
Columns of priority 0 are what `kubectl get` shows, the others appear with `-o wide`; the server always sends all of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

#: What may stand in a table.
Cell: TypeAlias = str | int | bool
Cells: TypeAlias = list[Cell]


class Column(msgspec.Struct, frozen=True):
    """One column, as it is in `columnDefinitions`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class RowCondition(msgspec.Struct, frozen=True):
    """Marks a row as completed, so that clients may dim or hide it."""

    type: str
    status: str
    reason: str
    message: str


def _no_conditions(obj: Any) -> Sequence[RowCondition]:
    return ()


@dataclass(frozen=True, slots=True)
class Printer:
    """The printer of one kind."""

    columns: tuple[Column, ...]
    #: (object, now in ns) -> one cell for each column
    cells: Callable[[Any, int], Cells]
    conditions: Callable[[Any], Sequence[RowCondition]] = _no_conditions
    #: (all objects, now in ns) -> cells of each, for kinds whose rows depend on their neighbours in a list
    list_cells: Callable[[Sequence[Any], int], list[Cells]] | None = None


def wide(name: str, description: str = "") -> Column:
    """Make a column that only `-o wide` shows."""
    return Column(name, description=description, priority=1)


NAME = Column("Name", format="name", description="Name, unique among objects of this kind in a namespace.")
AGE = Column("Age", description="Time since the object was created.")
CONTAINERS = wide("Containers", "Names of the containers in the template.")
IMAGES = wide("Images", "Images of the containers in the template.")
SELECTOR = wide("Selector", "Labels of the pods that belong to the object.")
