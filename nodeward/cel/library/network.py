"""IP addresses and networks in expressions: `ip("10.0.0.1").family()`, `cidr("10.0.0.0/8").containsIP(...)`.

Parsing accepts and refuses what Go's `netip` does, with its messages.
"""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

from nodeward.base.fielderror import quote
from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import EvaluationError, ExtensionValue, no_overload

IP: Final = t.opaque("net.IP")
CIDR: Final = t.opaque("net.CIDR")

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressError(ValueError):
    """The text is not an address. The message is Go's."""


class IPValue(ExtensionValue):
    """An IP address."""

    __slots__ = ("address",)
    cel_type = IP

    def __init__(self, address: _Address) -> None:
        self.address = address

    @property
    def cost_size(self) -> int:
        return self.address.max_prefixlen // 8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPValue) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return str(self.address)


class CIDRValue(ExtensionValue):
    """A network: an address and how many of its bits count."""

    __slots__ = ("address", "bits")
    cel_type = CIDR

    def __init__(self, address: _Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def cost_size(self) -> int:
        return -(-self.bits // 8)

    def prefix(self, address: _Address, bits: int) -> int | None:
        """Return the first bits of an address of the same family."""
        if address.version != self.address.version:
            return None
        return int(address) >> (address.max_prefixlen - bits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDRValue) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _fail(text: str, message: str, at: str = "") -> AddressError:
    where = f" (at {quote(at)})" if at else ""
    return AddressError(f"ParseAddr({quote(text)}): {message}{where}")


def parse_address(text: str) -> tuple[_Address, str]:
    """Return the address and its zone; raises AddressError."""
    for character in text:
        if character == ".":
            return _parse_v4(text, text), ""
        if character == ":":
            return _parse_v6(text)
        if character == "%":
            raise _fail(text, "missing IPv6 address")
    raise _fail(text, "unable to parse IP")


def _parse_v4(text: str, whole: str) -> ipaddress.IPv4Address:
    fields: list[int] = []
    value = digits = 0
    for at, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if digits == 1 and value == 0:
                raise _fail(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise _fail(whole, "IPv4 field has value >255")
        elif character == ".":
            if at == 0 or at == len(text) - 1 or text[at - 1] == ".":
                raise _fail(whole, "IPv4 field must have at least one digit", text[at:])
            if len(fields) == 3:
                raise _fail(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _fail(whole, "unexpected character", text[at:])
    if len(fields) < 3:
        raise _fail(whole, "IPv4 address too short")
    return ipaddress.IPv4Address(bytes([*fields, value]))


def _parse_v6(text: str) -> tuple[ipaddress.IPv6Address, str]:
    address, has_zone, zone = text.partition("%")
    if has_zone and not zone:
        raise _fail(text, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    rest = address
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return ipaddress.IPv6Address(0), zone
    while len(groups) < 8:
        end = 0
        while end < len(rest) and rest[end] in "0123456789abcdefABCDEF":
            end += 1
            if end > 4:
                raise _fail(text, "each group must have 4 or less digits", rest)
        if end == 0:
            raise _fail(text, "each colon-separated field must have at least one digit", rest)
        if rest[end : end + 1] == ".":
            if ellipsis < 0 and len(groups) != 6:
                raise _fail(
                    text, "embedded IPv4 address must replace the final 2 fields of the address", rest
                )
            if len(groups) > 6:
                raise _fail(
                    text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest
                )
            packed = int(_parse_v4(rest, text))
            groups += [packed >> 16, packed & 0xFFFF]
            rest = ""
            break
        groups.append(int(rest[:end], 16))
        rest = rest[end:]
        if not rest:
            break
        if rest[0] != ":":
            raise _fail(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _fail(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _fail(text, "multiple :: in address", rest)
            ellipsis, rest = len(groups), rest[1:]
            if not rest:
                break
    if rest:
        raise _fail(text, "trailing garbage after address", rest)
    if len(groups) < 8:
        if ellipsis < 0:
            raise _fail(text, "address string too short")
        groups[ellipsis:ellipsis] = [0] * (8 - len(groups))
    elif ellipsis >= 0:
        raise _fail(text, "the :: must expand to at least one field of zeros")
    return ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups)), zone


def _ip(text: str) -> IPValue:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        raise EvaluationError(
            f"IP Address {quote(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IPValue(address)


def _is_mapped(address: _Address) -> bool:
    return address.version == 6 and int(address) >> 32 == 0xFFFF


_CIDR_PARSE: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> CIDRValue:
    try:
        return _parse_cidr(text)
    except AddressError as error:
        raise EvaluationError(f"{_CIDR_PARSE}{error}") from None


def _parse_cidr(text: str) -> CIDRValue:
    wrong = f"{_CIDR_PARSE}netip.ParsePrefix({quote(text)}): "
    address_text, slash, bits_text = text.rpartition("/")
    if not slash:
        raise AddressError(f"{wrong}no '/'")
    try:
        address, zone = parse_address(address_text)
    except AddressError as error:
        raise AddressError(wrong + str(error)) from None
    if zone:
        raise AddressError(f"{wrong}IPv6 zones cannot be present in a prefix")
    is_number = bits_text.isascii() and bits_text.isdigit() and len(bits_text) < 10
    if (len(bits_text) > 1 and bits_text[0] not in "123456789") or not is_number:
        raise AddressError(f"{wrong}bad bits after slash: {quote(bits_text)}")
    bits = int(bits_text)
    if bits > address.max_prefixlen:
        raise AddressError(f"{wrong}prefix length out of range")
    if _is_mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDRValue(address, bits)


def _is(parse: Implementation) -> Implementation:
    def run(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return run


def _contains_ip(network: CIDRValue, ip: IPValue) -> bool:
    mine = network.prefix(network.address, network.bits)
    return mine == network.prefix(ip.address, network.bits)


def _contains_ip_text(network: CIDRValue, text: str) -> bool:
    try:
        return _contains_ip(network, _ip(text))
    except EvaluationError:
        raise no_overload() from None


def _contains_cidr(network: CIDRValue, other: CIDRValue) -> bool:
    if network.bits > other.bits:
        return False
    return network.prefix(network.address, network.bits) == network.prefix(other.address, network.bits)


def _masked(network: CIDRValue) -> CIDRValue:
    shift = network.address.max_prefixlen - network.bits
    return CIDRValue(type(network.address)(int(network.address) >> shift << shift), network.bits)


def _is_link_local_multicast(ip: IPValue) -> bool:
    if ip.address.version == 4:
        return int(ip.address) >> 8 == 0xE00000
    return int(ip.address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(ip: IPValue) -> bool:
    address = ip.address
    is_broadcast = address.version == 4 and int(address) == 0xFFFFFFFF
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (special or is_broadcast)


def _of_ip(name: str, id_: str, result: t.CelType, run: Implementation) -> Function:
    return Function(name, (Overload(id_, (IP,), result, run, is_member=True),))


def _of_cidr(name: str, id_: str, result: t.CelType, run: Implementation) -> Function:
    return Function(name, (Overload(id_, (CIDR,), result, run, is_member=True),))


def _of_text(name: str, id_: str, result: t.CelType, run: Implementation) -> Function:
    return Function(name, (Overload(id_, (t.STRING,), result, run),))


NETWORK: Final = (
    _of_text("ip", "string_to_ip", IP, _ip),
    _of_ip("family", "ip_family", t.INT, lambda ip: ip.address.version),
    _of_text("ip.isCanonical", "ip_is_canonical", t.BOOL, lambda text: str(_ip(text)) == text),
    _of_ip("isUnspecified", "ip_is_unspecified", t.BOOL, lambda ip: ip.address.is_unspecified),
    _of_ip("isLoopback", "ip_is_loopback", t.BOOL, lambda ip: ip.address.is_loopback),
    _of_ip("isLinkLocalMulticast", "ip_is_link_local_multicast", t.BOOL, _is_link_local_multicast),
    _of_ip("isLinkLocalUnicast", "ip_is_link_local_unicast", t.BOOL, lambda ip: ip.address.is_link_local),
    _of_ip("isGlobalUnicast", "ip_is_global_unicast", t.BOOL, _is_global_unicast),
    _of_text("isIP", "is_ip", t.BOOL, _is(_ip)),
    Function("string", (Overload("ip_to_string", (IP,), t.STRING, str),)),
    _of_text("cidr", "string_to_cidr", CIDR, _cidr),
    Function(
        "containsIP",
        (
            Overload(
                "cidr_contains_ip_string",
                (CIDR, t.STRING),
                t.BOOL,
                _contains_ip_text,
                is_member=True,
            ),
            Overload("cidr_contains_ip_ip", (CIDR, IP), t.BOOL, _contains_ip, is_member=True),
        ),
    ),
    Function(
        "containsCIDR",
        (
            Overload(
                "cidr_contains_cidr_string",
                (CIDR, t.STRING),
                t.BOOL,
                lambda network, text: _contains_cidr(network, _cidr(text)),
                is_member=True,
            ),
            Overload("cidr_contains_cidr", (CIDR, CIDR), t.BOOL, _contains_cidr, is_member=True),
        ),
    ),
    _of_cidr("ip", "cidr_ip", IP, lambda network: IPValue(network.address)),
    _of_cidr("prefixLength", "cidr_prefix_length", t.INT, lambda network: network.bits),
    _of_cidr("masked", "cidr_masked", CIDR, _masked),
    _of_text("isCIDR", "is_cidr", t.BOOL, _is(_cidr)),
    Function("string", (Overload("cidr_to_string", (CIDR,), t.STRING, str),)),
)
