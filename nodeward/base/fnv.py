"""The hash FNV-1a in 32 bits, by which the kubelet's checkpoints are checked. Called by the kubelet's state files."""

from __future__ import annotations

from typing import Final

_START: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


def fnv1a_32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash of some bytes."""
    value = _START
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return value
