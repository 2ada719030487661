"""What kinds and fields mean, in our own words: what `kubectl explain` shows.

In goes the name of a struct and the module it lives in (`core_v1`, `meta`); out comes a sentence for the struct and for
each of its fields. The sentences stand in one text file for each module, beside this module:

    # a remark
    PodSpec  What a pod consists of.
      containers  Containers of the pod; at least one.
    Container,EphemeralContainer
      args  A field that several types share.

A line that is not indented names one type or several, and may say what they are; indented lines below it say what
their fields mean. In `meta.txt`, `*` stands for every kind and `List` for the list of any. A file is read when the
first struct of its module is asked for: a server whose OpenAPI nobody reads never opens one. Nothing is said twice, and
nothing is said of what does not exist; the tests see to both.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

#: field -> sentence; under "" the sentence for the type itself
Words: TypeAlias = Mapping[str, str]
#: line number, the types it is about, the field ("" for the types themselves), the sentence
Entry: TypeAlias = tuple[int, list[str], str, str]

META: Final = "meta"
ANY_KIND: Final = "*"
ANY_LIST: Final = "List"
_NOTHING: Final[Words] = {}


def entries(module: str) -> Iterator[Entry]:
    """Return the entries of a module's file, line by line; nothing if the module has no file."""
    try:  # not importlib.resources, whose first use takes longer than reading all files
        content = pkgutil.get_data(__name__, f"{module}.txt") or b""
    except FileNotFoundError:
        return
    types: list[str] = []
    for number, line in enumerate(content.decode().split("\n"), start=1):
        if not line or line[0] == "#":
            continue
        name, _, text = line.strip().partition("  ")
        if line[0] == " ":
            yield number, types, name, text
        else:
            types = name.split(",")
            if text:
                yield number, types, "", text


@functools.cache
def _read(module: str) -> Mapping[str, Words]:
    found: dict[str, dict[str, str]] = {}
    for _, types, field, text in entries(module):
        for type_ in types:
            found.setdefault(type_, {})[field] = text
    return found


def words_for(module: str, type_: str, *, is_kind: bool) -> Words:
    """Return the sentences for a type and its fields; those for every kind fill the gaps of a kind."""
    own = _read(module).get(type_, _NOTHING)
    return {**_read(META).get(ANY_KIND, _NOTHING), **own} if is_kind else own
