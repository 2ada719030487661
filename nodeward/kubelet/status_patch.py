"""What the API must be told about a pod's status: the difference, as a strategic merge patch.

Conditions are told one by one, because others write some of them; every other part that is the kubelet's is told
whole when it differs. Parts that are somebody else's are left out. Of the answer only the version is read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodStatus

#: Parts of the status a kubelet may take away again.
_OWN: Final = (
    "reason",
    "message",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
    "resize",
    "observedGeneration",
)


#: Conditions that are there while something is the case, and then taken away.
_PASSING: Final = ("PodResizePending", "PodResizeInProgress")


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_VERSION: Final = msgspec.json.Decoder(_Versioned)


def version_of(answer: bytes) -> int:
    """Of what the API answers to a patch, only which version it made."""
    return int(_VERSION.decode(answer).metadata.resource_version or "0")


def status_patch(pod: Pod, before: PodStatus, after: PodStatus) -> dict[str, Any] | None:
    """The patch that makes `before` say what `after` says; None if it does already."""
    if before == after:
        return None
    old: dict[str, Any] = dict(to_tree(before))
    new: dict[str, Any] = dict(to_tree(after))
    known = {each["type"]: each for each in old.pop("conditions", ())}
    wanted = new.pop("conditions", ())
    conditions = [each for each in wanted if known.get(each["type"]) != each]
    has = {each["type"] for each in wanted}
    conditions += [
        {"$patch": "delete", "type": each} for each in _PASSING if each in known and each not in has
    ]
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    changed |= {key: None for key in _OWN if key in old and key not in new}
    for key in ("podIPs", "hostIPs"):
        if changed.get(key):
            # Merged by address: what is no longer so must be taken away first.
            changed[key] = [{"$patch": "replace"}, *changed[key]] if old.get(key) else changed[key]
    if conditions:
        changed["conditions"] = conditions
    if not changed:
        return None
    return {"metadata": {"uid": pod.metadata.uid}, "status": changed}
