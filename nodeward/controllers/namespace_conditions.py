"""The conditions of a terminating namespace: findings in, conditions out. Called by the namespace controller.

Pure: `DeletionFindings` are the result of one attempt to empty a namespace, `apply` writes them into its status.
Reasons and messages are Kubernetes' own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.core_v1.cluster import NamespaceCondition, NamespaceStatus
from nodeward.base.timestamp import rfc3339

DISCOVERY: Final = "NamespaceDeletionDiscoveryFailure"
PARSING: Final = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT: Final = "NamespaceDeletionContentFailure"
REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS: Final = "NamespaceFinalizersRemaining"

#: In the order they appear in: what each says when all is well. Group versions are read by the client, which takes
#: any text, so that PARSING never says anything else.
_FINE: Final = (
    (DISCOVERY, "ResourcesDiscovered", "All resources successfully discovered"),
    (PARSING, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (CONTENT, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    (REMAINING, "ContentRemoved", "All content successfully removed"),
    (FINALIZERS, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


@dataclass(slots=True)
class DeletionFindings:
    """The result of one attempt to empty a namespace."""

    discovery_error: str = ""
    content_errors: list[str] = field(default_factory=list)
    #: How many objects are left, by "resource.group".
    remaining: Counter[str] = field(default_factory=Counter)
    #: How many objects wait for each finalizer.
    finalizers: Counter[str] = field(default_factory=Counter)
    #: Seconds after which what is left may be gone.
    estimate: int = 0

    def errors(self) -> list[str]:
        return [text for text in (self.discovery_error, *self.content_errors) if text]


def apply(status: NamespaceStatus, findings: DeletionFindings, now_ns: int) -> bool:
    """Write the conditions into `status`; whether anything about them is new."""
    troubles = _troubles(findings)
    has_changed = False
    for type_, reason, message in _FINE:
        is_true = "False"
        if type_ in troubles:
            is_true = "True"
            reason, message = troubles[type_]
        old = next((each for each in status.conditions if each.type == type_), None)
        if old is None:
            fresh = NamespaceCondition(
                type=type_,
                status=is_true,
                last_transition_time=rfc3339(now_ns),
                reason=reason,
                message=message,
            )
            status.conditions = [*status.conditions, fresh]
        elif (old.status, old.reason, old.message) == (is_true, reason, message):
            continue
        else:
            if old.status != is_true:
                old.last_transition_time = rfc3339(now_ns)
            old.status, old.reason, old.message = is_true, reason, message
        has_changed = True
    return has_changed


def _troubles(findings: DeletionFindings) -> dict[str, tuple[str, str]]:
    """Return reason and message of every true condition. Lists are sorted, so that repeats change nothing."""
    found: dict[str, tuple[str, str]] = {}
    if findings.discovery_error:
        found[DISCOVERY] = ("DiscoveryFailed", findings.discovery_error)
    if errors := sorted(findings.content_errors):
        message = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(errors)}"
        found[CONTENT] = ("ContentDeletionFailed", message)
    if findings.remaining:
        parts = sorted(f"{what} has {count} resource instances" for what, count in findings.remaining.items())
        found[REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(parts)}")
    if findings.finalizers:
        parts = sorted(f"{name} in {count} resource instances" for name, count in findings.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
        found[FINALIZERS] = ("SomeFinalizersRemain", message)
    return found
