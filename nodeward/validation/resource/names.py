"""Names and small values in dynamic resource allocation: drivers, pools, attributes, configuration.

In goes text with its path, out come field errors. What a newer type checks by declaration has its own words; the
functions with `declared` in their name give those.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from nodeward.base.fielderror import FieldError, invalid, required, too_long
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import (
    c_identifier,
    dns_subdomain,
    label_key_faults,
)
from nodeward.validation.checks import (
    check_count,
    check_distinct,
    check_each,
    check_form,
    check_label,
    check_size,
    check_subdomain,
)
from nodeward.validation.pod.volume_network import validate_csi_driver_name, validate_declared_driver

T = TypeVar("T")
_ID_LIMIT: Final = 32
_DOMAIN_LIMIT: Final = 63
_POOL_LIMIT: Final = 253
_KEY_LIMIT: Final = _DOMAIN_LIMIT + 1 + _ID_LIMIT
_IS_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch

validate_driver_name = validate_csi_driver_name
validate_driver_declared = validate_declared_driver


validate_label = check_label


def validate_pool_name(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = check_size(name, path, _POOL_LIMIT)
    return errors + [error for part in name.split("/") for error in check_subdomain(part, path)]


def validate_pool_declared(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = check_size(name, path, _POOL_LIMIT)
    for i, part in enumerate(name.split("/")):
        faults = dns_subdomain(part) if part else ["must not be empty"]
        errors += [invalid(path, part or name, f"segment {i}: {fault}") for fault in faults]
    return errors


def validate_uuid(text: str | None, path: FieldPath) -> list[FieldError]:
    if text is None or _IS_UUID(text):
        return []
    return [invalid(path, text, "must be a lowercase UUID in 8-4-4-4-12 format")]


def _identifier(text: str, path: FieldPath) -> list[FieldError]:
    return check_size(text, path, _ID_LIMIT) + check_form(text, path, c_identifier)


def validate_qualified(name: str, path: FieldPath) -> list[FieldError]:
    """The name of an attribute or a capacity: `name`, or `domain/name`."""
    domain, slash, rest = name.partition("/")
    if not slash:
        return _identifier(name, path)
    if "/" in rest:
        # Kubernetes has no rule for two slashes; such a name can never be looked up.
        return []
    errors = (
        validate_driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    )
    return errors + (_identifier(rest, path) if rest else [invalid(path, "", "the name must not be empty")])


def validate_fully_qualified(name: str, path: FieldPath) -> list[FieldError]:
    """An attribute named with its domain."""
    parts = name.split("/")
    if len(parts) == 1:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        return [*_identifier(name, path), invalid(path, name, detail)]
    if len(parts) > 2:
        return []
    domain, rest = parts
    faults = (
        [f"prefix: {fault}" for fault in dns_subdomain(domain)] if domain else ["prefix must not be empty"]
    )
    errors = check_size(domain, path, _DOMAIN_LIMIT) + [invalid(path, domain, fault) for fault in faults]
    return errors + (_identifier(rest, path) if rest else [invalid(path, "", "name must not be empty")])


def validate_extended_resource(name: str, path: FieldPath) -> list[FieldError]:
    """The name under which pods may ask for devices of a class as for any resource."""
    errors: list[FieldError] = []
    if "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        errors.append(invalid(path, name, detail))
    elif "kubernetes.io/" in name:
        errors.append(invalid(path, name, 'must not have "kubernetes.io/" domain'))
    if name.startswith("requests."):
        errors.append(invalid(path, name, 'must not have "requests." prefix'))
    return errors + [invalid(path, name, fault) for fault in label_key_faults(f"requests.{name}")]


def validate_raw_object(value: Any, path: FieldPath, limit: int, *, is_stored: bool) -> list[FieldError]:
    """Configuration that only a driver understands: a JSON object, not too long when it is new."""
    if value is None:
        return [required(path)]
    # Unlike upstream: the length is that of the compact form, as the text a caller sent is not kept.
    if not is_stored and len(msgspec.json.encode(value)) > limit:
        return [too_long(path, limit)]
    if not isinstance(value, dict):
        return [invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


def shortened(key: str) -> str:
    """A key that is far too long, as it stands in a path."""
    if len(key) <= _KEY_LIMIT:
        return key
    left = _KEY_LIMIT - 3
    return f"{key[: (left + 1) // 2]}...{key[len(key) - left // 2 :]}"


def validate_list(
    items: list[T], limit: int, check: Callable[[T, FieldPath], list[FieldError]], path: FieldPath
) -> list[FieldError]:
    """Not too many, and each one fine."""
    return check_count(items, path, limit) or check_each(items, path, check)


def validate_set(
    items: list[T],
    limit: int,
    check: Callable[[T, FieldPath], list[FieldError]],
    key: Callable[[T], object],
    path: FieldPath,
) -> list[FieldError]:
    """Not too many, each one fine, and no two alike."""
    errors = validate_list(items, limit, check, path)
    return errors if len(items) > limit else errors + check_distinct(map(key, items), path)
