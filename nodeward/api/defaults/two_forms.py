"""Values a client may write in two ways, converted to the stored one: applied before defaults, in place.

Upstream does this when it converts to its internal types, so nothing after that point (admission, managedFields,
validation, storage) ever sees the other form. `ONE_FORM[type(obj)](obj)`; kinds without such a field have no entry.
Applying it twice is the same as once.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.cluster import Secret
from nodeward.api.core_v1.node import Node
from nodeward.api.defaults.defaulter import Defaults


def _secret(secret: Secret) -> None:
    """Move `stringData` to `data`, over which it wins; it is never stored or shown."""
    for key, text in secret.string_data.items():
        secret.data[key] = text.encode()
    secret.string_data = {}


def _node(node: Node) -> None:
    """Make `podCIDR` the first of `podCIDRs`; where they differ `podCIDR`, the only one older clients know, wins."""
    spec = node.spec
    if spec.pod_cidr and spec.pod_cidr not in spec.pod_cidrs[:1]:
        spec.pod_cidrs = [spec.pod_cidr]
    spec.pod_cidr = spec.pod_cidrs[0] if spec.pod_cidrs else ""


ONE_FORM: Final[Defaults] = {Node: _node, Secret: _secret}
