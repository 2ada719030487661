"""Which versions of components may live together, and what an old one does with what it has never heard of.

In go versions ("1.36") of components; out come plain sentences about what is not supported. A component older than a
feature behaves as if the feature did not exist: its gate is off and cannot be set, fields it brought are unknown,
and operators it brought match nothing. `knows` is that question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.features import CATALOGUE

#: How many minor versions a component may be older than the oldest API server it talks to. None may be newer.
MAY_BE_OLDER: Final[Mapping[str, int]] = {
    "kube-controller-manager": 1,
    "kube-scheduler": 1,
    "kube-proxy": 3,
    "kubelet": 3,
}
#: How far API servers of one cluster may be apart, and kubectl from them in either direction.
API_SERVERS_APART: Final = 1
KUBECTL_APART: Final = 1

#: The order in which a cluster is upgraded; a downgrade goes the other way.
UPGRADE_ORDER: Final = (
    "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
)  # fmt: skip


def minor(version: str) -> int:
    """Return the number behind "1."; a version may have a leading v and a patch."""
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not (parts[1].isascii() and parts[1].isdigit()):
        raise ConfigError(f'version "{version}" is not of the form 1.minor, such as 1.37')
    return int(parts[1])


def knows(version: str, gate: str) -> bool:
    """Tell whether a component of this version has heard of the feature, on or off."""
    known = CATALOGUE.get(gate)
    return known is not None and bool(known.specs) and known.specs[0].since <= minor(version)


def skew_problems(api_servers: Sequence[str], component: str, version: str) -> list[str]:
    """Return what is wrong with a component of this version beside API servers of those; nothing is an empty list."""
    if not api_servers:
        return []
    mine, minors = minor(version), [minor(each) for each in api_servers]
    oldest, newest = min(minors), max(minors)
    if component == "kubectl":
        is_fine = newest - KUBECTL_APART <= mine <= oldest + KUBECTL_APART
        return [] if is_fine else [_sentence(component, mine, oldest, newest, "at most 1 version apart")]
    if component == "kube-apiserver":
        apart = max(newest, mine) - min(oldest, mine)
        text = f"API servers of one cluster are at most {API_SERVERS_APART} version apart, not {apart}"
        return [text] if apart > API_SERVERS_APART else []
    older = MAY_BE_OLDER.get(component)
    if older is None:
        raise ConfigError(f'no component is called "{component}"')
    if mine > oldest:
        return [_sentence(component, mine, oldest, newest, "never newer than the oldest API server")]
    if mine < newest - older:
        return [_sentence(component, mine, oldest, newest, f"at most {older} older")]
    return []


def _sentence(component: str, mine: int, oldest: int, newest: int, rule: str) -> str:
    servers = f"1.{oldest}" if oldest == newest else f"1.{oldest} to 1.{newest}"
    return f"{component} 1.{mine} beside API server {servers}: it may be {rule}"


def next_to_upgrade(versions: Mapping[str, str], target: str) -> list[str]:
    """Return the components still below the target, in the order they should be upgraded."""
    goal = minor(target)
    return [name for name in UPGRADE_ORDER if name in versions and minor(versions[name]) < goal]
