"""What the name of a resource says: Kubernetes' own or somebody else's, overcommitted or not, for whole pods or not.

Called by validation, defaults, accounting (`pod_resources`, `qos`) and whoever asks which rules hold for a resource.
Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nodeward.base.quantity import Quantity, QuantityError
from nodeward.rules.names import LONGEST_REMEMBERED, label_key_faults

HUGEPAGES: Final = "hugepages-"
_POD_LEVEL: Final = frozenset({"cpu", "memory"})


def is_hugepages(name: str) -> bool:
    return name.startswith(HUGEPAGES)


def is_native(name: str) -> bool:
    """Tell whether the resource is Kubernetes' own: no domain, or one of kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Return a resource somebody else defined, counted in whole units."""
    if len(name) > LONGEST_REMEMBERED:
        is_extended.cache_clear()
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key_faults(f"requests.{name}")


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_hugepages(name)


def is_pod_level(name: str) -> bool:
    """May it stand in the resources of a whole pod, and be mapped onto by a device? cpu, memory and huge pages."""
    return name in _POD_LEVEL or is_hugepages(name)


def is_divisible_hugepages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGEPAGES))
    except QuantityError:
        return False
    if page.sign <= 0 or page.milli_value % 1000:
        return False
    return quantity.value % page.value == 0
