"""Formats by name: `format.dns1123Label().validate(text)` gives what is wrong with a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Overload
from nodeward.cel.library.urls import UrlError, parse_url
from nodeward.cel.values import NONE, ExtensionValue, OptionalValue
from nodeward.rules import names

FORMAT: Final = t.struct("kubernetes.NamedFormat")

_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(.[0-9]+)?(z|([+-]\d\d:\d\d))", re.ASCII)
_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class NamedFormat(ExtensionValue):
    """A format: its name, what it finds wrong with a text, and the size its cost is computed from."""

    __slots__ = ("check", "name", "regex_size")
    cel_type = FORMAT

    def __init__(self, name: str, check: Callable[[str], list[str]], regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _MONTHS[month - 1] + (is_leap and month == 2)


def _is_datetime(text: str) -> bool:
    date, mark, rest = text.lower().partition("t")
    clock = _TIME.fullmatch(rest.partition("t")[0])
    if not mark or not _is_date(date) or clock is None:
        return False
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def _rule(holds: Callable[[str], bool], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [message]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(names.mask_trailing_dash(text))


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except UrlError as error:
        return [str(error)]
    return []


FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", names.dns_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.dns_1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(names.dns_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(names.dns_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(names.dns_1035_label), 30),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat(
        "uuid", _rule(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format"), 70
    ),
    "byte": NamedFormat("byte", _rule(lambda text: bool(_BASE64.fullmatch(text)), "invalid base64"), 84),
    "date": NamedFormat("date", _rule(_is_date, "invalid date"), 71),
    "datetime": NamedFormat("datetime", _rule(_is_datetime, "invalid datetime"), 71),
}


def _validate(form: NamedFormat, text: str) -> OptionalValue:
    faults = form.check(text)
    return OptionalValue(faults) if faults else NONE


def _named(name: str) -> OptionalValue:
    return OptionalValue(FORMATS[name]) if name in FORMATS else NONE


def _constant(name: str, form: NamedFormat) -> Function:
    return Function(f"format.{name}", (Overload(f"format.{name}", (), FORMAT, lambda: form),))


NAMED_FORMATS: Final = (
    Function(
        "validate",
        (
            Overload(
                "format-validate",
                (FORMAT, t.STRING),
                t.optional_of(t.list_of(t.STRING)),
                _validate,
                is_member=True,
            ),
        ),
    ),
    Function("format.named", (Overload("format-named", (t.STRING,), t.optional_of(FORMAT), _named),)),
    *(_constant(name, form) for name, form in FORMATS.items()),
)
