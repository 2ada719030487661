"""What is wrong with one field, in the words Kubernetes uses.

Validators return lists of `FieldError`; `nodeward.api.errors.invalid` turns a list into a `Status` with causes.
The text of an error is `<path>: <kind>: <value>: <detail>`, where the value is left out for kinds that carry none.

Used by every component; calls `fieldpath`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from nodeward.base.fieldpath import FieldPath


class Cause(Enum):
    """The kinds of field errors: the reason in a `Status` cause, and the words in its message."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_SHORT = ("FieldValueTooShort", "Too short")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TOO_FEW = ("FieldValueTooFew", "Too few")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


#: Kinds whose message never shows the value.
_SILENT = frozenset({Cause.REQUIRED, Cause.FORBIDDEN, Cause.TOO_LONG, Cause.TOO_SHORT, Cause.INTERNAL})


def quote(text: str) -> str:
    """`text` in double quotes, with what would break a line escaped."""
    return json.dumps(text, ensure_ascii=False)


def render(value: object) -> str:
    """Return a bad value as it stands in a message: strings quoted, the rest as JSON."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    import msgspec

    return msgspec.json.encode(value, enc_hook=str).decode()


class TooManyFaults(Exception):
    """Raised in the middle of a validation that has found `MOST_FAULTS` faults; never leaves `limited_faults`."""


class FoundFaults:
    """The faults of one validation: all of them, or the first ones if it was stopped."""

    def __init__(self) -> None:
        self.faults: list[FieldError] = []

    def add(self, fault: FieldError) -> None:
        self.faults.append(fault)
        if len(self.faults) >= MOST_FAULTS:
            raise TooManyFaults

    def complete(self, faults: list[FieldError]) -> None:
        """Keep what the validation has returned, rather than everything that was looked at."""
        self.faults = faults


#: Most faults that are looked for in one object: one of 100,000 items would cost seconds and be answered by megabytes.
MOST_FAULTS: Final = 1_000
_found: ContextVar[FoundFaults | None] = ContextVar("found_faults", default=None)


@contextmanager
def limited_faults() -> Iterator[FoundFaults]:
    """Run a validation that ends with its `MOST_FAULTS`th fault; the block calls `complete` with what it returned."""
    found = FoundFaults()
    token = _found.set(found)
    try:
        yield found
    except TooManyFaults:
        pass
    finally:
        _found.reset(token)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field, one fault."""

    cause: Cause
    field: str
    value: Any
    detail: str = ""
    #: reported after all others: upstream finds it in a second pass, which it derives from the types
    is_late: bool = False

    def __post_init__(self) -> None:
        found = _found.get()
        if found is not None:
            found.add(self)

    @property
    def body(self) -> str:
        """The message without the path."""
        text = self.cause.words
        if self.cause not in _SILENT and self.value is not OMITTED:
            text = f"{text}: {render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


#: Stands for a bad value that the message does not show.
OMITTED: Any = object()


def late(errors: Iterable[FieldError]) -> list[FieldError]:
    """Return these faults, to be reported after all others."""
    return [replace(error, is_late=True) for error in errors]


def in_order(errors: Iterable[FieldError]) -> list[FieldError]:
    """Faults in the order in which they are reported: each once, the late ones last."""
    once = {str(error): error for error in errors}.values()
    return sorted(once, key=lambda error: error.is_late)


def not_found(path: FieldPath, value: object) -> FieldError:
    return FieldError(Cause.NOT_FOUND, str(path), value)


def required(path: FieldPath, detail: str = "") -> FieldError:
    return FieldError(Cause.REQUIRED, str(path), "", detail)


def duplicate(path: FieldPath, value: object) -> FieldError:
    return FieldError(Cause.DUPLICATE, str(path), value)


def invalid(path: FieldPath, value: object, detail: str) -> FieldError:
    return FieldError(Cause.INVALID, str(path), value, detail)


def type_invalid(path: FieldPath, value: object, detail: str) -> FieldError:
    return FieldError(Cause.TYPE_INVALID, str(path), value, detail)


def not_supported(path: FieldPath, value: object, supported: Iterable[str]) -> FieldError:
    """`supported` is shown in the order given."""
    listed = ", ".join(quote(item) for item in supported)
    return FieldError(Cause.NOT_SUPPORTED, str(path), value, f"supported values: {listed}" if listed else "")


def forbidden(path: FieldPath, detail: str) -> FieldError:
    return FieldError(Cause.FORBIDDEN, str(path), "", detail)


def too_long(path: FieldPath, limit: int, *, unit: str = "byte") -> FieldError:
    plural = unit if limit == 1 else f"{unit}s"
    return FieldError(Cause.TOO_LONG, str(path), "", f"may not be more than {limit} {plural}")


def too_many(path: FieldPath, actual: int, limit: int) -> FieldError:
    plural = "item" if limit == 1 else "items"
    return FieldError(Cause.TOO_MANY, str(path), actual, f"must have at most {limit} {plural}")


def too_few(path: FieldPath, actual: int, limit: int) -> FieldError:
    plural = "item" if limit == 1 else "items"
    return FieldError(Cause.TOO_FEW, str(path), actual, f"must have at least {limit} {plural}")


def internal(path: FieldPath, detail: str) -> FieldError:
    return FieldError(Cause.INTERNAL, str(path), "", detail)


def aggregate(errors: Iterable[FieldError]) -> str:
    """Many errors as one text: `[a, b]`, a single one without brackets, repeats shown once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
