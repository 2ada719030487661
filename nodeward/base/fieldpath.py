"""Where in an object something is: `spec.containers[0].ports[key].name`.

A path is a linked list, so that walking down an object costs one small allocation a step and the text is
made only when there is an error to report.
"""

from __future__ import annotations


class FieldPath:
    """One step of a path and the steps above it. Immutable."""

    __slots__ = ("_parent", "_text")

    def __init__(self, text: str, parent: FieldPath | None = None) -> None:
        self._text = text
        self._parent = parent

    def child(self, *names: str) -> FieldPath:
        """The field `name` of the object here (and so on, for several names)."""
        path = self
        for name in names:
            path = FieldPath(f".{name}" if path._text else name, path)
        return path

    def index(self, position: int) -> FieldPath:
        """The list item at `position`."""
        return FieldPath(f"[{position}]", self)

    def key(self, key: str) -> FieldPath:
        """The map entry `key`."""
        return FieldPath(f"[{key}]", self)

    def __str__(self) -> str:
        parts: list[str] = []
        step: FieldPath | None = self
        while step is not None:
            parts.append(step._text)
            step = step._parent
        return "".join(reversed(parts))

    def __repr__(self) -> str:
        return f"FieldPath({str(self)!r})"


#: The object itself; `ROOT.child("spec")` prints as `spec`.
ROOT = FieldPath("")
