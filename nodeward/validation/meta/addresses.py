"""IP addresses and networks in fields that are older than the strict rules for them.

Old fields took what lenient parsers take (`010.1.2.3`); with StrictIPCIDRValidation on, new values must be plain,
values that are already stored stay. Lenient values that pass still draw a warning.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from typing import Final

from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, invalid, quote
from nodeward.base.fieldpath import FieldPath

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DOTTED: Final = re.compile(r"[0-9]+(\.[0-9]+){3}")
_STRICT_GATE: Final = "StrictIPCIDRValidation"
_BAD_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def parse_ip(text: str) -> Address | None:
    """The address, read leniently: zeros in front of a number are fine."""
    return _plain_ip(text) or _plain_ip(_without_leading_zeros(text))


def parse_cidr(text: str) -> tuple[Address, Network] | None:
    """The address before the slash and the network it lies in, read leniently."""
    host, slash, length = text.partition("/")
    address = parse_ip(host)
    if not slash or address is None or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > address.max_prefixlen:
        return None
    return address, ipaddress.ip_network((address, int(length)), strict=False)


def validate_ip(text: str, path: FieldPath, ctx: Context, old: Collection[str] = ()) -> list[FieldError]:
    """An address in an old field; values in `old` are already stored and stay."""
    if text in old:
        return []
    if parse_ip(text) is None:
        return [invalid(path, text, _BAD_IP)]
    if not ctx.on(_STRICT_GATE):
        return []
    strict = _plain_ip(text)
    if strict is None:
        return [invalid(path, text, "must not have leading 0s")]
    if _is_mapped(strict):
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def validate_cidr(text: str, path: FieldPath, ctx: Context, old: Collection[str] = ()) -> list[FieldError]:
    """A network in an old field; values in `old` are already stored and stay."""
    if text in old:
        return []
    parsed = parse_cidr(text)
    if parsed is None:
        return [invalid(path, text, _BAD_CIDR)]
    if not ctx.on(_STRICT_GATE):
        return []
    address, network = parsed
    if not _is_plain_cidr(text):
        return [invalid(path, text, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(address):
        return [invalid(path, text, "must not have an IPv4-mapped IPv6 address")]
    if address != network.network_address:
        return [invalid(path, text, "must not have bits set beyond the prefix length")]
    return []


def ip_warnings(text: str, path: FieldPath) -> list[str]:
    address = parse_ip(text)
    if address is None:
        return []
    if _plain_ip(text) is None or _is_mapped(address):
        return [f"{path}: non-standard IP address {quote(text)} is invalid: use {quote(_shown(address))}"]
    if address.version == 6 and str(address) != text:
        shown = quote(str(address))
        return [f"{path}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({shown})"]
    return []


def cidr_warnings(text: str, path: FieldPath) -> list[str]:
    parsed = parse_cidr(text)
    if parsed is None:
        return []
    address, network = parsed
    warnings: list[str] = []
    if address != network.network_address:
        single = f"{_shown(address)}/{address.max_prefixlen}"
        warnings.append(
            f"{path}: CIDR value {quote(text)} is ambiguous in this context "
            f"(should be {quote(str(network))} or {quote(single)}?)"
        )
    if not _is_plain_cidr(text) or _is_mapped(address):
        shown = quote(str(network))
        warnings.append(f"{path}: non-standard CIDR value {quote(text)} is invalid: use {shown}")
    if not warnings and address.version == 6 and str(network) != text:
        shown = quote(str(network))
        warnings.append(
            f"{path}: IPv6 CIDR value {quote(text)} should be in RFC 5952 canonical format ({shown})"
        )
    return warnings


def is_dual_stack(addresses: Sequence[Address | Network | None]) -> bool:
    """Both families among them?"""
    return {4, 6} == {address.version for address in addresses if address is not None}


def _plain_ip(text: str) -> Address | None:
    if "%" in text or "/" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _without_leading_zeros(text: str) -> str:
    head, colon, tail = text.rpartition(":")
    if not _DOTTED.fullmatch(tail):
        return text
    return f"{head}{colon}{'.'.join(str(int(part)) for part in tail.split('.'))}"


def _is_plain_cidr(text: str) -> bool:
    host, _, length = text.partition("/")
    return _plain_ip(host) is not None and str(int(length)) == length


def _is_mapped(address: Address) -> bool:
    return address.version == 6 and address.ipv4_mapped is not None


def _shown(address: Address) -> str:
    mapped = address.ipv4_mapped if address.version == 6 else None
    return str(mapped if mapped is not None else address)
