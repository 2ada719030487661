"""The signature of a pod: equal for pods that no plugin of a profile tells apart.

A profile's classes of pods (`cache/classes.py`) make one `PodSigner` from the fields its plugins declare and look every
pod up by what it says: pods with equal signatures share filter and score columns. So a field nobody declares does not
separate pods, and a field a plugin reads without declaring it would let pods share answers that are not theirs.

A path names attributes from the pod on, `[*]` every element of a list: `spec.tolerations`, `spec.containers[*].image`.
It must not lead through an attribute that can be None. What a path cannot say is a function of the `PodView`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from nodeward.api.codec import encode
from nodeward.base.errors import ConfigError

if TYPE_CHECKING:
    from nodeward.api.core_v1.pod import Pod
    from nodeward.scheduler.framework.pod import PodView

#: A path from the pod, or a function of its view whose value JSON can say.
PodField: TypeAlias = "str | Callable[[PodView], object]"

_EACH: Final = "[*]"
_Tree: TypeAlias = "dict[str, _Tree]"


class PodSigner:
    """Signs pods by the given fields; a field that is given twice counts once."""

    __slots__ = ("_read", "fields")

    def __init__(self, fields: Iterable[PodField]) -> None:
        self.fields: Final = tuple(dict.fromkeys(fields))
        self._read = reader(self.fields)

    def sign(self, view: PodView) -> bytes:
        """The pod's signature, kept in the view."""
        if view.signer is not self:
            view.signer = self
            view.signature = encode(self._read(view.pod, view))
        return view.signature or b""


def reader(fields: Iterable[PodField]) -> Callable[[Pod, PodView | None], object]:
    """A function that reads all fields of a pod; the view is what functions among the fields are given.

    It is put together as source and compiled once, as `dataclasses` does: it runs for every pod, and a loop over paths
    would take longer than all the reading.
    """
    tree: _Tree = {}
    calls: list[str] = []
    known: dict[str, object] = {}
    every = list(fields)
    whole = tuple(f"{field}{end}" for field in every if isinstance(field, str) for end in (".", _EACH))
    for field in every:
        if isinstance(field, str):
            if not field.startswith(whole):  # else a part of something that is read as a whole
                _grow(tree, field)
        else:
            name = f"field_{len(known)}"
            known[name] = field
            calls.append(f"{name}(view)")
    source = f"lambda pod, view: ({_expression(tree, 'pod')}, {''.join(f'{call}, ' for call in calls)})"
    made: Callable[[Pod, PodView | None], object] = eval(source, known)  # only names, see _grow
    return made


def _grow(tree: _Tree, path: str) -> None:
    """Add a path; a step into every element of a list has a name that ends in `[*]`."""
    names = path.split(".")
    for name in names:
        if not name.removesuffix(_EACH).isidentifier():
            raise ConfigError(f'{path!r} is no path of a pod, such as "spec.containers[*].image"')
        tree = tree.setdefault(name, {})


def _expression(tree: _Tree, start: str, depth: int = 0) -> str:
    """Source for a tuple of all that the tree names from `start` on."""
    parts: list[str] = []
    for name, inner in tree.items():
        here = f"{start}.{name.removesuffix(_EACH)}"
        if not inner:
            parts.append(here)
        elif name.endswith(_EACH):
            each = f"each{depth}"
            # Most lists are empty, and a comprehension costs a call.
            parts.append(f"{here} and [{_expression(inner, each, depth + 1)} for {each} in {here}]")
        else:
            parts.append(_expression(inner, here, depth))
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
