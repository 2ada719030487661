"""Which texts may be names: DNS labels, qualified names, label values, ports, environment variables, paths.

Every function takes the text and returns what is wrong with it, in Kubernetes' words; an empty list means nothing.
The common ones remember their answers: the same label keys and names come by thousands of times.

Called by the API server, the kubelet, validation and other rules.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

DNS_LABEL_LIMIT: Final = 63
DNS_SUBDOMAIN_LIMIT: Final = 253

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_LABEL_UNDERSCORE: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN_UNDERSCORE: Final = rf"{_DNS_LABEL_UNDERSCORE}(\.{_DNS_LABEL_UNDERSCORE})*"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD: Final = rf"\*\.{_DNS_SUBDOMAIN}"
_LABEL_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_LABEL_KEY})?"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_ENV_NAME: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_PERCENT: Final = "[0-9]+%"
_HEADER: Final = "[-A-Za-z0-9]+"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_IS_DNS_LABEL: Final = re.compile(_DNS_LABEL).fullmatch
_IS_DNS_SUBDOMAIN: Final = re.compile(_DNS_SUBDOMAIN).fullmatch
_IS_DNS_SUBDOMAIN_UNDERSCORE: Final = re.compile(_DNS_SUBDOMAIN_UNDERSCORE).fullmatch
_IS_DNS_1035: Final = re.compile(_DNS_1035).fullmatch
_IS_WILDCARD: Final = re.compile(_WILDCARD).fullmatch
_IS_LABEL_KEY: Final = re.compile(_LABEL_KEY).fullmatch
_IS_LABEL_VALUE: Final = re.compile(_LABEL_VALUE).fullmatch
_IS_C_IDENTIFIER: Final = re.compile(_C_IDENTIFIER).fullmatch
_IS_ENV_NAME: Final = re.compile(_ENV_NAME).fullmatch
_IS_CONFIG_KEY: Final = re.compile(_CONFIG_KEY).fullmatch
_IS_PERCENT: Final = re.compile(_PERCENT).fullmatch
_IS_HEADER: Final = re.compile(_HEADER).fullmatch
_IS_HTTP_PATH: Final = re.compile(_HTTP_PATH).fullmatch
_IS_PORT_CHARSET: Final = re.compile("[-a-z0-9]+").fullmatch
_HAS_LETTER: Final = re.compile("[a-z]").search
_IS_PRINTABLE_BUT_EQUALS: Final = re.compile("[ -<>-~]*").fullmatch
_IS_DECIMAL: Final = re.compile("0|-?[1-9][0-9]*").fullmatch

_ALNUM_DASH: Final = "must consist of lower case alphanumeric characters"
_ENDS: Final = "must start and end with an alphanumeric character"


def regex_error(message: str, expression: str, *examples: str) -> str:
    """Return the words for a text that does not match, as Kubernetes puts them (odd commas and all)."""
    if not examples:
        return f"{message} (regex used for validation is '{expression}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{expression}')"


def size(text: str) -> int:
    """Return how long Kubernetes finds the text: bytes, not letters."""
    return len(text) if text.isascii() else len(text.encode())


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def in_range(low: int, high: int) -> str:
    """Return the words for a number outside a range."""
    return f"must be between {low} and {high}, inclusive"


_BAD_DNS_LABEL: Final = regex_error(
    f"a lowercase RFC 1123 label {_ALNUM_DASH} or '-', and {_ENDS}", _DNS_LABEL, "my-name", "123-abc"
)
_BAD_DNS_SUBDOMAIN: Final = regex_error(
    f"a lowercase RFC 1123 subdomain {_ALNUM_DASH}, '-' or '.', and {_ENDS}", _DNS_SUBDOMAIN, "example.com"
)
_BAD_ANY_CASE: Final = regex_error(
    f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and {_ENDS}",
    _DNS_SUBDOMAIN,
    "Example.com",
)
_BAD_DNS_SUBDOMAIN_UNDERSCORE: Final = regex_error(
    f"a lowercase RFC 1123 subdomain {_ALNUM_DASH}, '_', '-' or '.', and {_ENDS}",
    _DNS_SUBDOMAIN_UNDERSCORE,
    "example.com",
)
_BAD_DNS_1035: Final = regex_error(
    f"a DNS-1035 label {_ALNUM_DASH} or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_BAD_WILDCARD: Final = regex_error(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    f"{_ALNUM_DASH}, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_BAD_LABEL_KEY: Final = regex_error(
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _LABEL_KEY,
    "MyName",
    "my.name",
    "123-abc",
)
_BAD_LABEL_VALUE: Final = regex_error(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_BAD_C_IDENTIFIER: Final = regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_BAD_ENV_NAME: Final = regex_error(
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    _ENV_NAME,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_BAD_CONFIG_KEY: Final = regex_error(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_BAD_PERCENT: Final = regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_BAD_HEADER: Final = regex_error(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
#: A path that is not made of what HTTP allows in one.
BAD_HTTP_PATH: Final = regex_error("Invalid path", _HTTP_PATH)


#: A longer text is forgotten with the next one of its kind, so that texts nobody should send fill no memory.
LONGEST_REMEMBERED: Final = 512


@lru_cache(maxsize=4096)
def _label_faults(text: str) -> tuple[str, ...]:
    if len(text) > LONGEST_REMEMBERED:
        _label_faults.cache_clear()
    faults = () if size(text) <= DNS_LABEL_LIMIT else (_too_long(DNS_LABEL_LIMIT),)
    if _IS_DNS_LABEL(text):
        return faults
    return (*faults, "must not contain dots" if _IS_DNS_SUBDOMAIN(text) else _BAD_DNS_LABEL)


def dns_label(text: str) -> list[str]:
    """RFC 1123: namespaces, containers, volumes."""
    return list(_label_faults(text))


@lru_cache(maxsize=4096)
def _subdomain_faults(text: str) -> tuple[str, ...]:
    if len(text) > LONGEST_REMEMBERED:
        _subdomain_faults.cache_clear()
    faults = () if size(text) <= DNS_SUBDOMAIN_LIMIT else (_too_long(DNS_SUBDOMAIN_LIMIT),)
    return faults if _IS_DNS_SUBDOMAIN(text) else (*faults, _BAD_DNS_SUBDOMAIN)


def dns_subdomain(text: str) -> list[str]:
    """RFC 1123 with dots: most object names."""
    return list(_subdomain_faults(text))


def dns_subdomain_any_case(text: str) -> list[str]:
    """RFC 1123 with dots, in capitals or not: names of drivers where a rule derived from the types checks them."""
    faults = _subdomain_faults(text.lower())
    return [_BAD_ANY_CASE if fault == _BAD_DNS_SUBDOMAIN else fault for fault in faults]


def dns_subdomain_with_underscore(text: str) -> list[str]:
    faults = [] if size(text) <= DNS_SUBDOMAIN_LIMIT else [_too_long(DNS_SUBDOMAIN_LIMIT)]
    return faults if _IS_DNS_SUBDOMAIN_UNDERSCORE(text) else [*faults, _BAD_DNS_SUBDOMAIN_UNDERSCORE]


def dns_1035_label(text: str) -> list[str]:
    """RFC 1035: services."""
    faults = [] if size(text) <= DNS_LABEL_LIMIT else [_too_long(DNS_LABEL_LIMIT)]
    return faults if _IS_DNS_1035(text) else [*faults, _BAD_DNS_1035]


def wildcard_dns_subdomain(text: str) -> list[str]:
    faults = [] if size(text) <= DNS_SUBDOMAIN_LIMIT else [_too_long(DNS_SUBDOMAIN_LIMIT)]
    return faults if _IS_WILDCARD(text) else [*faults, _BAD_WILDCARD]


@lru_cache(maxsize=16384)
def label_key_faults(text: str) -> tuple[str, ...]:
    """`qualified_name` as an immutable, remembered answer: the form for loops over labels."""
    if len(text) > LONGEST_REMEMBERED:
        label_key_faults.cache_clear()
    prefix, slash, name = text.partition("/")
    faults: list[str] = []
    if not slash:
        name = prefix
    elif "/" in name:
        return (
            f"a valid label key {_BAD_LABEL_KEY} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    elif not prefix:
        faults.append("prefix part must be non-empty")
    else:
        if size(prefix) > DNS_SUBDOMAIN_LIMIT:
            faults.append(f"prefix part must be no more than {DNS_SUBDOMAIN_LIMIT} bytes")
        if not _IS_DNS_SUBDOMAIN(prefix):
            faults.append(f"prefix part {_BAD_DNS_SUBDOMAIN}")
    if not name:
        faults.append("name part must be non-empty")
    elif size(name) > DNS_LABEL_LIMIT:
        faults.append(f"name part must be no more than {DNS_LABEL_LIMIT} bytes")
    if not _IS_LABEL_KEY(name):
        faults.append(f"name part {_BAD_LABEL_KEY}")
    return tuple(faults)


def qualified_name(text: str) -> list[str]:
    """`name` or `example.com/name`: label and annotation keys, taints, resources, finalizers."""
    return list(label_key_faults(text))


@lru_cache(maxsize=16384)
def label_value_faults(text: str) -> tuple[str, ...]:
    """`label_value` as an immutable, remembered answer."""
    if len(text) > LONGEST_REMEMBERED:
        label_value_faults.cache_clear()
    faults = () if size(text) <= DNS_LABEL_LIMIT else (f"must be no more than {DNS_LABEL_LIMIT} bytes",)
    return faults if _IS_LABEL_VALUE(text) else (*faults, _BAD_LABEL_VALUE)


def label_value(text: str) -> list[str]:
    return list(label_value_faults(text))


def port_number(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else [in_range(1, 65535)]


def port_name(text: str) -> list[str]:
    """Return an IANA service name: how a port of a container is called."""
    faults = [] if size(text) <= 15 else [_too_long(15)]
    if not _IS_PORT_CHARSET(text):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _HAS_LETTER(text):
        faults.append("must contain at least one letter (a-z)")
    if "--" in text:
        faults.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def c_identifier(text: str) -> list[str]:
    return [] if _IS_C_IDENTIFIER(text) else [_BAD_C_IDENTIFIER]


def env_name(text: str) -> list[str]:
    """Return the strict rule for an environment variable."""
    faults = [] if _IS_ENV_NAME(text) else [_BAD_ENV_NAME]
    return faults + _dots(text)


def relaxed_env_name(text: str) -> list[str]:
    """Return the rule since RelaxedEnvironmentVariableValidation: printable ASCII but `=`."""
    faults = [] if text else ["environment variable name must be non-empty"]
    if not _IS_PRINTABLE_BUT_EQUALS(text):
        faults.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return faults


def config_key(text: str) -> list[str]:
    """Return a key of a ConfigMap or a Secret."""
    faults = [] if size(text) <= DNS_SUBDOMAIN_LIMIT else [_too_long(DNS_SUBDOMAIN_LIMIT)]
    if not _IS_CONFIG_KEY(text):
        faults.append(_BAD_CONFIG_KEY)
    return faults + _dots(text)


def _dots(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def percent(text: str) -> list[str]:
    return [] if _IS_PERCENT(text) else [_BAD_PERCENT]


def http_header_name(text: str) -> list[str]:
    return [] if _IS_HEADER(text) else [_BAD_HEADER]


def http_path(text: str) -> bool:
    """Only characters that RFC 3986 allows in a path?"""
    return _IS_HTTP_PATH(text) is not None


def decimal_integer(text: str) -> list[str]:
    """Return a whole number written in the one canonical way: no sign but `-`, no zeros in front."""
    if not text:
        return ["must be non-empty"]
    return [] if _IS_DECIMAL(text) else ["must be a valid decimal integer in canonical form"]


def user_id(number: int) -> list[str]:
    return [] if 0 <= number <= 2**31 - 1 else [in_range(0, 2**31 - 1)]


group_id = user_id


def path_segment_name(text: str) -> list[str]:
    """Names that only have to fit between two slashes: roles and bindings."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return path_segment_prefix(text)


def path_segment_prefix(text: str) -> list[str]:
    return [f"may not contain '{bad}'" for bad in "/%" if bad in text]


def mask_trailing_dash(text: str) -> str:
    """Return a `generateName` as its rule sees it: a dash at the end is fine, as something will follow."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text
