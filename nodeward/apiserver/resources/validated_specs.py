"""Pod specs that passed validation: replicas differ in nothing but their names, so a spec is validated once.

Validation is a pure function of the object and the server's gates. A spec that was found valid, with the same labels
and annotations, is valid the next time; only what depends on the name is checked again. Specs in which the name matters
(claims named after the pod) have no key and are never kept. Called by the strategy of pods (`resources/pods.py`).
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.codec import encode
from nodeward.api.core_v1.pod import Pod

#: Specs kept at a time, and the longest key that is kept.
MAX_SPECS: Final = 512
MAX_KEY_BYTES: Final = 16 << 10
#: The volume whose name the ServiceAccount plugin generates for each pod.
TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")
#: Stands for that name in a key: no JSON has this byte in it.
_ANY_TOKEN_VOLUME: Final = b"\xff"


class ValidatedSpecs:
    """A bounded set of keys; cleared when full, which costs one more validation per spec."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def add(self, key: bytes) -> None:
        """Record that pods with this key are valid and cause no warning."""
        if len(self._keys) >= MAX_SPECS:
            self._keys.clear()
        self._keys.add(key)


def spec_key(pod: Pod) -> bytes | None:
    """Return what tells one spec from another, whatever the pod's name is; None: the name matters to validation."""
    spec = pod.spec
    if spec.resource_claims or any(volume.ephemeral is not None for volume in spec.volumes):
        return None
    text = encode((spec, pod.metadata.labels, pod.metadata.annotations))
    if len(text) > MAX_KEY_BYTES:
        return None
    generated = [each.name for each in spec.volumes if TOKEN_VOLUME.fullmatch(each.name)]
    # One name of this form is as good as another; two can be the same, which is an error.
    return text.replace(generated[0].encode(), _ANY_TOKEN_VOLUME) if len(generated) == 1 else text
