"""Which controllers to run, by the names kube-controller-manager's users know.

In the registry a controller is called after its service account; `--controllers` knows it by another name, and by the
short one of earlier versions. `*` is all of them, `foo` adds one, `-foo` leaves one out.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.controllers.controller import ControllerDescriptor

ALL: Final = "*"

#: Where the name is not that of the service account.
_OTHERWISE: Final = MappingProxyType(
    {
        "service-account-controller": "serviceaccount-controller",
        "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
        "generic-garbage-collector": "garbage-collector-controller",
        "pod-garbage-collector": "pod-garbage-collector-controller",
        "replication-controller": "replicationcontroller-controller",
        "daemon-set-controller": "daemonset-controller",
        "resource-claim-controller": "resourceclaim-controller",
    }
)
#: Short names that are not the long one without its ending.
_ALIASES: Final = MappingProxyType(
    {
        "podgc": "pod-garbage-collector-controller",
        "garbagecollector": "garbage-collector-controller",
        "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
        "nodelifecycle": "node-lifecycle-controller",
    }
)


def name_of(entry: ControllerDescriptor) -> str:
    """Return what `--controllers` calls it."""
    return _OTHERWISE.get(entry.name, entry.name)


def chosen(
    entries: Sequence[ControllerDescriptor], wanted: Sequence[str]
) -> tuple[ControllerDescriptor, ...]:
    """Return the entries that are asked for, in the order of the registry. What nobody knows raises a ConfigError."""
    known = {name_of(entry): entry for entry in entries}
    everything, added, left_out = False, set[str](), set[str]()
    for word in (each.strip() for each in wanted):
        if word == ALL:
            everything = True
        elif word.startswith("-"):
            left_out.add(_known(word[1:], known))
        elif word:
            added.add(_known(word, known))
    return tuple(
        entry for name, entry in known.items() if name in added or (everything and name not in left_out)
    )


def _known(name: str, known: dict[str, ControllerDescriptor]) -> str:
    for candidate in (name, _ALIASES.get(name, ""), f"{name}-controller"):
        if candidate in known:
            return candidate
    short = [each.removesuffix("-controller") for each in known]
    near = difflib.get_close_matches(name, [*known, *short, *_ALIASES], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    raise ConfigError(f"{name!r} is not in the list of known controllers{hint} there are {', '.join(known)}")
