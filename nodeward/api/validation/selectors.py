"""Does a label selector choose these labels? The small part of matching that rules about workloads need.

In goes a `LabelSelector`, out comes an answer. A selector that is not there chooses nothing, an empty one everything.
"""

from __future__ import annotations

from nodeward.api.meta import LabelSelector, LabelSelectorRequirement
from nodeward.api.validation.labels import validate_label_selector
from nodeward.base.fieldpath import ROOT


def is_usable(selector: LabelSelector | None) -> bool:
    """Could the selector be asked at all? A malformed one cannot."""
    return not validate_label_selector(selector, ROOT)


def is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def chooses(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """Does the selector choose an object with these labels?"""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(requirement, labels) for requirement in selector.match_expressions)


def _holds(requirement: LabelSelectorRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None
