"""YAML bodies as JSON: the YAML that Kubernetes clients write, at a cost that is bounded before it is paid.

Numbers, booleans and nulls are read as Kubernetes reads them; times and base-60 numbers (`1:30`) are text, as they are
there. A document may neither nest nor hold more than the limits say, its aliases included.

Called by `negotiation.py` and for applied configurations by `verbs/patch.py`; calls PyYAML, in C where there is that.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import yaml

from nodeward.api.codec import encode
from nodeward.api.errors import bad_request

_DEPTH: Final = 500
#: Most values of a document, those of aliases included.
MOST_NODES: Final = 100_000
#: More digits than the largest number of 64 bits, in any base, with room for separators.
_MOST_DIGITS: Final = 80

_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_STANDARD: Final = "tag:yaml.org,2002:"
#: Kinds of plain scalars that stay text: base-60 numbers are never looked for, these are not either.
_TEXT: Final = (f"{_STANDARD}timestamp", f"{_STANDARD}value", f"{_STANDARD}int", f"{_STANDARD}float")


def yaml_to_json(body: bytes) -> bytes:
    """Convert YAML (or JSON, which is YAML) to JSON; raises 400."""
    if body.lstrip()[:1] == b"{":
        return body
    loader = _loader()
    try:
        _check(body, loader)
        return encode(yaml.load(body, Loader=loader))
    except (yaml.YAMLError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None


@functools.cache
def _loader() -> Any:
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("KubernetesLoader", (base,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in known if tag not in _TEXT]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    whole_int, whole_float = re.compile(f"(?:{_INT.pattern})$"), re.compile(f"(?:{_FLOAT.pattern})$")
    loader.add_implicit_resolver(f"{_STANDARD}int", whole_int, list("-+0123456789"))
    loader.add_implicit_resolver(f"{_STANDARD}float", whole_float, list("-+0123456789."))
    loader.add_constructor(f"{_STANDARD}int", _integer)
    loader.add_constructor(f"{_STANDARD}float", _float)
    return loader


def _integer(loader: Any, node: yaml.ScalarNode) -> int | float:
    text = str(node.value).replace("_", "")
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too long")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits.startswith("0") and digits.isdigit():
        number = int(digits, 8)
    else:
        number = int(digits, 0)
    return sign * number if number < 2**64 else sign * float(number)


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    text = str(node.value).replace("_", "").lower()
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too long")
    if text.endswith((".inf", ".nan")):
        raise ValueError(f"{node.value} cannot be written as JSON")
    return float(text)


def _check(body: bytes, loader: Any) -> None:
    """Refuse YAML that nests too deep for the loader in C, which would crash, or whose aliases make it explode.

    An alias costs what its anchor costs, aliases in it included; all in all a document may not come to more than
    `MOST_NODES` nodes.
    """
    costs: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    total = 0
    has_aliases = False
    for event in yaml.parse(body, Loader=loader):
        before = total
        if isinstance(event, yaml.AliasEvent):
            has_aliases = True
            total += costs.get(event.anchor or "", 0)
        elif isinstance(event, yaml.CollectionStartEvent):
            total += 1
            open_.append((event.anchor, before))
            if len(open_) > _DEPTH:
                raise ValueError("exceeded max depth")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor is not None:
                costs[anchor] = total - before
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor is not None:
                costs[event.anchor] = 1
        if total > MOST_NODES:
            if has_aliases:
                raise ValueError("document contains excessive aliasing")
            raise ValueError(f"document contains more than {MOST_NODES:,} values")
