"""A short name for a pod template: the same for the same template in every process, different for most others.

The letters are those of generated names (no vowels, nothing easily mistaken). The number behind them is not
Kubernetes' own: a cluster that moves here keeps its replica sets, because those are recognised by their templates.

Called by `controller_revisions` and `deployment.revisions`.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.machinery.clock import NAME_ALPHABET

_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def template_hash(template: PodTemplateSpec, collision_count: int | None = None) -> str:
    """Return up to ten letters; `collision_count` gives another hash to a template whose first is taken."""
    digest = hashlib.blake2s(_ENCODER.encode(to_tree(template)), digest_size=4)
    if collision_count is not None:
        digest.update(collision_count.to_bytes(8, "little"))
    return safe_encoded(str(int.from_bytes(digest.digest(), "little")))


def safe_encoded(text: str) -> str:
    """Return each character as a letter that is fit for the end of a name."""
    return "".join(NAME_ALPHABET[ord(character) % len(NAME_ALPHABET)] for character in text)
