"""Where in an object something is: `spec.containers[0].ports[key].name`.

A path is a linked list, so that walking down an object costs one small allocation a step and the text is
made only when there is an error to report.

Called by the API server, the scheduler, the kubelet and validation.
"""

from __future__ import annotations


class FieldPath:
    """One step of a path and the steps above it. Immutable."""

    __slots__ = ("_parent", "_step")

    def __init__(self, step: str | int, parent: FieldPath | None = None) -> None:
        self._step = step
        self._parent = parent

    def child(self, name: str, *more: str) -> FieldPath:
        """Return the field `name` of the object here (and so on, for several names)."""
        path = FieldPath(name, self)
        for each in more:
            path = FieldPath(each, path)
        return path

    def index(self, position: int) -> FieldPath:
        """Return the list item at `position`."""
        return FieldPath(position, self)

    def key(self, key: str) -> FieldPath:
        """Return the map entry `key`."""
        return FieldPath(f"[{key}]", self)

    def __str__(self) -> str:
        steps: list[str | int] = []
        path: FieldPath | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        text = ""
        for step in reversed(steps):
            if isinstance(step, int):
                text += f"[{step}]"
            elif not text or step.startswith("["):
                text += step
            else:
                text += f".{step}"
        return text

    def __repr__(self) -> str:
        return f"FieldPath({str(self)!r})"


#: The object itself; `ROOT.child("spec")` prints as `spec`.
ROOT = FieldPath("")
