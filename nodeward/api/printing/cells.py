"""Texts that several printers put into cells: ages, labels, selectors, container lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from nodeward.api.core_v1.container import Container
from nodeward.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from nodeward.base.duration import human_duration
from nodeward.base.timestamp import TimestampError, parse_rfc3339

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"
#: Lists of addresses and ports are cut after this many.
_SHOWN = 3


# Many objects were created in the same second; parsing each timestamp would be half of a table's cost.
@lru_cache(maxsize=4096)
def moment(timestamp: str | None) -> int | None:
    """Return the timestamp in ns, or None when there is none."""
    if not timestamp:
        return None
    try:
        return parse_rfc3339(timestamp)
    except TimestampError:
        return None


def since(timestamp: str | None, now_ns: int) -> str:
    """Format how long ago a time was, as `5m`."""
    then = moment(timestamp)
    return UNKNOWN if then is None else human_duration(now_ns - then)


def age(obj: KubeObject, now_ns: int) -> str:
    return since(obj.metadata.creation_timestamp, now_ns)


def labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(sorted(f"{key}={value}" for key, value in labels.items())) or NONE


def selector_text(selector: LabelSelector | None) -> str | None:
    """Format the selector as `kubectl -l` reads it; None when it is invalid."""
    if selector is None:
        return ""
    parts = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        text = _requirement_text(requirement)
        if text is None:
            return None
        parts.append((requirement.key, text))
    parts.sort(key=lambda part: part[0])
    return ",".join(text for _, text in parts)


def _requirement_text(requirement: LabelSelectorRequirement) -> str | None:
    key, values = requirement.key, sorted(requirement.values)
    match requirement.operator:
        case "In" if values:
            return f"{key} in ({','.join(values)})"
        case "NotIn" if values:
            return f"{key} notin ({','.join(values)})"
        case "Exists" if not values:
            return key
        case "DoesNotExist" if not values:
            return f"!{key}"
        case _:
            return None


def selector_cell(selector: LabelSelector | None) -> str:
    text = selector_text(selector)
    return "<error>" if text is None else text or NONE


def container_cells(containers: Sequence[Container]) -> tuple[str, str]:
    """Return the names and images of containers."""
    return ",".join(c.name for c in containers), ",".join(c.image for c in containers)


def shortened(items: Iterable[str]) -> str:
    """Return the first three and how many more there are."""
    listed = list(items)
    text = ",".join(listed[:_SHOWN])
    return f"{text} + {len(listed) - _SHOWN} more..." if len(listed) > _SHOWN else text
