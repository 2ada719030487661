"""Kubernetes' regular expression library: `find` and `findAll`."""

from __future__ import annotations

from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Overload
from nodeward.cel.library.regular_expressions import CompiledRegex, compile_regex
from nodeward.cel.values import EvaluationError

_S: Final = t.STRING


def _compile(pattern: str) -> CompiledRegex:
    try:
        return compile_regex(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    return _compile(pattern).find(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compile(pattern).find_all(text, limit)


REGEXES: Final = (
    Function("find", (Overload("string_find_string", (_S, _S), _S, _find, is_member=True),)),
    Function(
        "findAll",
        (
            Overload("string_find_all_string", (_S, _S), t.list_of(_S), _find_all, is_member=True),
            Overload("string_find_all_string_int", (_S, _S, t.INT), t.list_of(_S), _find_all, is_member=True),
        ),
    ),
)
