"""The checks that most fields share, as data: which values, which form, how long, how many, each only once.

The rules of every kind are written in these. A check takes a value and its path and returns field errors in Kubernetes'
words; a value that is not set (None) passes, unless the check says that it is needed. `Fields` is the table of a
struct: one check per field, in the order in which faults are reported, under the JSON names of the struct itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sized
from typing import Any, Final, TypeAlias, TypeVar

from nodeward.api.fields import KubeStruct
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import (
    dns_label,
    dns_subdomain,
    in_range,
    label_value_faults,
    port_number,
    qualified_name,
    size,
)

T = TypeVar("T")
#: A check with everything said but the value and where it stands.
Rule: TypeAlias = Callable[[Any, FieldPath], list[FieldError]]
#: What is wrong with a value's form, in words; nothing if all is fine.
Form: TypeAlias = Callable[[Any], Iterable[str]]

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"


def check_present(value: object, path: FieldPath, detail: str = "") -> list[FieldError]:
    """Must be set, and not empty."""
    return [] if value else [required(path, detail)]


def check_form(value: Any, path: FieldPath, form: Form) -> list[FieldError]:
    """If set, has the form."""
    return [] if value is None else [invalid(path, value, fault) for fault in form(value)]


def given(value: object, path: FieldPath) -> list[FieldError]:
    """Must be set, to whatever."""
    return [required(path)] if value is None else []


def check_name(value: str | None, path: FieldPath, form: Form) -> list[FieldError]:
    """Must be set, and have the form."""
    return [invalid(path, value, fault) for fault in form(value)] if value else [required(path)]


def check_one_of(value: str | None, path: FieldPath, values: Collection[str]) -> list[FieldError]:
    """If set, is one of the values; the answer lists them in the order given."""
    return [] if value is None or value in values else [not_supported(path, value, values)]


def check_choice(value: str | None, path: FieldPath, values: Collection[str]) -> list[FieldError]:
    """Must be set, and be one of the values."""
    if value in values:
        return []
    return [not_supported(path, value, values)] if value else [required(path)]


def check_size(text: str | None, path: FieldPath, limit: int) -> list[FieldError]:
    """If set, is no longer than that many bytes."""
    return [] if text is None or size(text) <= limit else [too_long(path, limit)]


def check_count(items: Sized, path: FieldPath, limit: int) -> list[FieldError]:
    """Are no more than that."""
    return [] if len(items) <= limit else [too_many(path, len(items), limit)]


def check_not_negative(number: int | None, path: FieldPath, detail: str = NOT_NEGATIVE) -> list[FieldError]:
    return [] if number is None or number >= 0 else [invalid(path, number, detail)]


def check_positive(
    number: int | None, path: FieldPath, detail: str = "must be greater than 0"
) -> list[FieldError]:
    return [] if number is None or number > 0 else [invalid(path, number, detail)]


def check_immutable(new: object, old: object, path: FieldPath) -> list[FieldError]:
    """Keeps the value it was made with."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def check_kept(new: object, old: object, path: FieldPath) -> list[FieldError]:
    """As `check_immutable` where Kubernetes checks by declaration: the answer shows no value."""
    return [] if new == old else [invalid(path, None, IMMUTABLE)]


def check_each(
    items: Iterable[T], path: FieldPath, rule: Callable[[T, FieldPath], list[FieldError]]
) -> list[FieldError]:
    """Every item is fine."""
    errors: list[FieldError] = []
    for i, item in enumerate(items):
        errors += rule(item, path.index(i))
    return errors


def check_unset(path: FieldPath, detail: str, /, **fields: object) -> list[FieldError]:
    """None of the fields (JSON name to value) is set."""
    return [forbidden(path.child(name), detail) for name, value in fields.items() if value]


class Distinct:
    """What was seen so far in a list whose items must differ."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def add(self, key: object, path: FieldPath, shown: object = None) -> list[FieldError]:
        """The key, shown as itself or as `shown`, was not seen before."""
        if key not in self._seen:
            self._seen.add(key)
            return []
        return [duplicate(path, key if shown is None else shown)]


def check_distinct(keys: Iterable[object], path: FieldPath) -> list[FieldError]:
    """No item is there twice."""
    return check_each(keys, path, Distinct().add)


def check_label(value: str | None, path: FieldPath) -> list[FieldError]:
    return check_form(value, path, dns_label)


def check_subdomain(value: str | None, path: FieldPath) -> list[FieldError]:
    return check_form(value, path, dns_subdomain)


def check_qualified(value: str | None, path: FieldPath) -> list[FieldError]:
    return check_form(value, path, qualified_name)


def check_label_value(value: str | None, path: FieldPath) -> list[FieldError]:
    return check_form(value, path, label_value_faults)


def check_port(value: int, path: FieldPath) -> list[FieldError]:
    return check_form(value, path, port_number)


def form(form: Form) -> Rule:
    """The rule of a field that, if set, has the form."""
    return lambda value, path: check_form(value, path, form)


def named(form: Form) -> Rule:
    """The rule of a field that must be set and have the form."""
    return lambda value, path: check_name(value, path, form)


def unless_empty(rule: Rule) -> Rule:
    """The rule, for a field that may be empty."""
    return lambda value, path: rule(value, path) if value else []


def unless_none(rule: Rule) -> Rule:
    """The rule, for a field that may be unset."""
    return lambda value, path: [] if value is None else rule(value, path)


def one_of(*values: str) -> Rule:
    return lambda value, path: check_one_of(value, path, values)


def choice(*values: str) -> Rule:
    """The rule of a field that must be set to one of the values."""
    return lambda value, path: check_choice(value, path, values)


def most(limit: int) -> Rule:
    """The rule of a text that, if set, is no longer than that."""
    return lambda value, path: check_size(value, path, limit)


def between(low: int, high: int) -> Rule:
    """The rule of a number that, if set, lies between the two, inclusive."""
    return lambda value, path: check_form(
        value, path, lambda n: () if low <= n <= high else (in_range(low, high),)
    )


def each(rule: Rule) -> Rule:
    """The rule of a list every item of which obeys `rule`."""
    return lambda items, path: check_each(items, path, rule)


def both(*rules: Rule) -> Rule:
    """All of the rules, one after the other."""
    return lambda value, path: [error for rule in rules for error in rule(value, path)]


def under(name: str, rule: Rule) -> tuple[str, Rule]:
    """In a table: the rule of a field that Kubernetes reports under another name than its own."""
    return name, rule


class Fields:
    """The rules of a struct, field by field. Itself a rule; a struct that is not set passes."""

    __slots__ = ("_rows",)

    def __init__(self, struct: type[KubeStruct], /, **rules: Rule | tuple[str, Rule]) -> None:
        names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
        self._rows = [
            (field, *rule) if isinstance(rule, tuple) else (field, names[field], rule)
            for field, rule in rules.items()
        ]

    def __call__(self, struct: KubeStruct | None, path: FieldPath) -> list[FieldError]:
        if struct is None:
            return []
        errors: list[FieldError] = []
        for field, json_name, rule in self._rows:
            errors += rule(getattr(struct, field), path.child(json_name))
        return errors
