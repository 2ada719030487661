"""Names of devices and pools: what tells one from another in the whole cluster."""

from __future__ import annotations

from typing import NamedTuple


class PoolID(NamedTuple):
    """A pool of one driver."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device of one pool."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"
