"""Values a client may write in two ways, and the one way they are kept: applied before defaults, in place.

Upstream does this where it converts what was sent into its inner form, so nothing behind that point (admission, field
ownership, validation, storage) ever sees the other way. `ONE_FORM[type(obj)](obj)`; kinds without such a field
have no entry. Applying it twice is the same as once.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.cluster import Secret
from nodeward.api.core_v1.node import Node
from nodeward.api.defaults.defaulter import Defaults


def _secret(secret: Secret) -> None:
    """`stringData` is a way to write `data`, and wins over it; it is never kept or shown."""
    for key, text in secret.string_data.items():
        secret.data[key] = text.encode()
    secret.string_data = {}


def _node(node: Node) -> None:
    """`podCIDR` is the first of `podCIDRs`; where they differ, older clients, who know only the one, are right."""
    spec = node.spec
    if spec.pod_cidr and spec.pod_cidr not in spec.pod_cidrs[:1]:
        spec.pod_cidrs = [spec.pod_cidr]
    spec.pod_cidr = spec.pod_cidrs[0] if spec.pod_cidrs else ""


ONE_FORM: Final[Defaults] = {Node: _node, Secret: _secret}
