"""The string library, version 2: search, split, replace, quote, join, format."""

from __future__ import annotations

from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType
from nodeward.cel.conversions import show
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.library.text_format import format_text
from nodeward.cel.values import COST_EXCEEDED, CostLimitExceeded, EvaluationError, Value

_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_QUOTED: Final = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
})  # fmt: skip
#: Unlike upstream: a longer text is not built; upstream stops such expressions by their cost, after the fact.
_LONGEST: Final = 10_000_000


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return text.rfind(part)


def _last_index_of_offset(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _ascii_lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)


def _ascii_upper(text: str) -> str:
    return "".join(each.upper() if each.isascii() else each for each in text)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if old else len(text) + 1
    if (count if limit < 0 else min(count, limit)) * len(new) > _LONGEST:
        raise CostLimitExceeded(COST_EXCEEDED)
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        if limit < 0 or limit >= len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for bound in (start, end):
        if not 0 <= bound <= len(text):
            raise _out_of_range(bound)
    return text[start:end]


def _join(items: list[Value], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvaluationError(f"join: invalid input: {show(item)}")
    return separator.join(items)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _member(id_: str, arguments: tuple[CelType, ...], result: CelType, run: Implementation) -> Overload:
    return Overload(id_, arguments, result, run, is_member=True)


_S, _I = t.STRING, t.INT
_TEXTS: Final = t.list_of(_S)

STRINGS: Final = (
    Function("charAt", (_member("string_char_at_int", (_S, _I), _S, _char_at),)),
    Function(
        "indexOf",
        (
            _member("string_index_of_string", (_S, _S), _I, _index_of),
            _member("string_index_of_string_int", (_S, _S, _I), _I, _index_of),
        ),
    ),
    Function(
        "lastIndexOf",
        (
            _member("string_last_index_of_string", (_S, _S), _I, _last_index_of),
            _member("string_last_index_of_string_int", (_S, _S, _I), _I, _last_index_of_offset),
        ),
    ),
    Function("lowerAscii", (_member("string_lower_ascii", (_S,), _S, _ascii_lower),)),
    Function("upperAscii", (_member("string_upper_ascii", (_S,), _S, _ascii_upper),)),
    Function(
        "replace",
        (
            _member("string_replace_string_string", (_S, _S, _S), _S, _replace),
            _member("string_replace_string_string_int", (_S, _S, _S, _I), _S, _replace),
        ),
    ),
    Function(
        "split",
        (
            _member("string_split_string", (_S, _S), _TEXTS, _split),
            _member("string_split_string_int", (_S, _S, _I), _TEXTS, _split),
        ),
    ),
    Function(
        "substring",
        (
            _member("string_substring_int", (_S, _I), _S, _substring),
            _member("string_substring_int_int", (_S, _I, _I), _S, _substring_range),
        ),
    ),
    Function("trim", (_member("string_trim", (_S,), _S, lambda text: text.strip(_SPACES)),)),
    Function("format", (_member("string_format", (_S, t.list_of(t.DYN)), _S, format_text),)),
    Function("strings.quote", (Overload("strings_quote", (_S,), _S, _quote),)),
    Function(
        "join",
        (
            _member("list_join", (_TEXTS,), _S, _join),
            _member("list_join_string", (_TEXTS, _S), _S, _join),
        ),
    ),
)
