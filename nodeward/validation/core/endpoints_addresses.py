"""Addresses that traffic is sent to, and names that stand for them.

In goes text with its path, out come field errors. `addresses` has the rules for older, more lenient fields; here
are those of newer fields, where an address has exactly one spelling, and what an endpoint may not be.
"""

from __future__ import annotations

import ipaddress

from nodeward.base.fielderror import FieldError, invalid, quote, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.meta.addresses import Address, parse_cidr, parse_ip


def plain(address: Address) -> Address:
    """An IPv4 address inside an IPv6 one is the IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_ipv6(text: str) -> bool:
    address = parse_ip(text)
    return address is not None and plain(address).version == 6


def validate_canonical_ip(text: str, path: FieldPath) -> list[FieldError]:
    """An address in a newer field: it has one spelling."""
    address = parse_ip(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if plain(address) is not address:
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    canonical = str(address)
    if canonical == text:
        return []
    if address.version == 4:
        return [invalid(path, text, "must not have leading 0s")]
    return [invalid(path, text, f"must be in canonical form ({quote(canonical)})")]


def validate_interface_address(text: str, path: FieldPath) -> list[FieldError]:
    """An address with the length of its network: `192.0.2.5/24`."""
    parsed = parse_cidr(text)
    if parsed is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, detail)]
    address, network = parsed
    length = network.prefixlen
    if plain(address) is not address and length > 32:
        length -= 96
    canonical = f"{plain(address)}/{length}"
    if canonical != text:
        return [invalid(path, text, f"must be in canonical form ({quote(canonical)})")]
    return []


def validate_endpoint_ip(text: str, path: FieldPath) -> list[FieldError]:
    """An address that traffic may be sent to."""
    parsed = parse_ip(text)
    if parsed is None:
        return [invalid(path, text, "must be a valid IP address")]
    address = plain(parsed)
    errors: list[FieldError] = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(address):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, detail))
    return errors


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def validate_domain(text: str, path: FieldPath) -> list[FieldError]:
    """A fully qualified domain name, with or without the dot at the end."""
    if not text:
        return [required(path)]
    name = text.removesuffix(".")
    if faults := dns_subdomain(name):
        return [invalid(path, name, ",".join(faults))]
    labels = name.split(".")
    if len(labels) < 2:
        detail = "should be a domain with at least two segments separated by dots"
        return [invalid(path, name, detail)]
    for label in labels:
        if faults := dns_label(label):
            return [invalid(path, label, ",".join(faults))]
    return []
