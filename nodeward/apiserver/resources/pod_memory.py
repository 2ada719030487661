"""Which pod specs are known to be sound: pods come in replicas, thousands that differ in nothing but their names.

Validation is a pure function of the object and the server's gates. A spec that was found without fault, with the same
labels and annotations, is without fault the next time; only what depends on the name is looked at again. Specs in
which the name matters (claims named after the pod) are never remembered.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.codec import encode
from nodeward.api.core_v1.pod import Pod

#: Specs remembered, and how long one may be.
REMEMBERED: Final = 512
LONGEST: Final = 16 << 10
#: The volume whose name the ServiceAccount plugin makes up for each pod.
TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")
#: What stands for that name in a key: no JSON has this byte in it.
_MADE_UP: Final = b"\xff"


class PodMemory:
    """Bounded; forgets everything when full, which costs one more validation per spec."""

    def __init__(self) -> None:
        self._sound: dict[bytes, None] = {}
        self._last: tuple[Pod, bytes | None] | None = None

    def key(self, pod: Pod) -> bytes | None:
        """What tells one spec from another, whatever the pod is called; None: the name matters here."""
        if self._last is not None and self._last[0] is pod:
            return self._last[1]
        key = self._make_key(pod)
        self._last = (pod, key)
        return key

    def _make_key(self, pod: Pod) -> bytes | None:
        spec = pod.spec
        if spec.resource_claims or any(volume.ephemeral is not None for volume in spec.volumes):
            return None
        text = encode((spec, pod.metadata.labels, pod.metadata.annotations))
        if len(text) > LONGEST:
            return None
        made_up = [each.name for each in spec.volumes if TOKEN_VOLUME.fullmatch(each.name)]
        # One name of this form is as good as another; two can be the same, which is a fault.
        return text.replace(made_up[0].encode(), _MADE_UP) if len(made_up) == 1 else text

    def knows(self, pod: Pod) -> bool:
        key = self.key(pod)
        return key is not None and key in self._sound

    def remember(self, pod: Pod) -> None:
        """This pod was found without fault, and nothing about it was worth a warning."""
        key = self.key(pod)
        if key is not None:
            if len(self._sound) >= REMEMBERED:
                self._sound.clear()
            self._sound[key] = None

    def forget_last(self) -> None:
        """The object that was looked at may change now."""
        self._last = None
