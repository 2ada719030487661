"""The events users read in `kubectl describe`: one function for each text.

What must stay true: types, reasons and words are upstream's, since people and alerts search for them; the output of
hooks is never told, because it may hold secrets.
"""

from __future__ import annotations

from typing import Final

from nodeward.base.duration import MILLISECOND_NS, SECOND_NS, format_duration
from nodeward.kubelet.pods.commands import RecordEvent

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


def pulling(container: str, image: str) -> RecordEvent:
    return RecordEvent(NORMAL, "Pulling", f'Pulling image "{image}"', container)


def pulled(container: str, image: str, seconds: float, size: int) -> RecordEvent:
    took = format_duration(int(seconds * SECOND_NS) // MILLISECOND_NS * MILLISECOND_NS)
    text = (
        f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {size} bytes.'
    )
    return RecordEvent(NORMAL, "Pulled", text, container)


def present(container: str, image: str, is_checked: bool) -> RecordEvent:
    more = " and can be accessed by the pod" if is_checked else ""
    return RecordEvent(
        NORMAL, "Pulled", f'Container image "{image}" already present on machine{more}', container
    )


def created(container: str) -> RecordEvent:
    return RecordEvent(NORMAL, "Created", "Container created", container)


def started(container: str) -> RecordEvent:
    return RecordEvent(NORMAL, "Started", "Container started", container)


def killing(container: str, message: str) -> RecordEvent:
    return RecordEvent(NORMAL, "Killing", message, container)


def backing_off(container: str, pod: str) -> RecordEvent:
    return RecordEvent(
        WARNING, "BackOff", f"Back-off restarting failed container {container} in pod {pod}", container
    )


def pull_backing_off(container: str, image: str) -> tuple[RecordEvent, RecordEvent]:
    return (
        RecordEvent(NORMAL, "BackOff", f'Back-off pulling image "{image}"', container),
        failed(container, "ImagePullBackOff"),
    )


def failed(container: str, what: str) -> RecordEvent:
    return RecordEvent(WARNING, "Failed", f"Error: {what}", container)


def failed_start(container: str, image: str, reason: str, message: str) -> tuple[RecordEvent, ...]:
    """All that is told when a container does not start."""
    if reason == "ErrImageNeverPull":
        return (RecordEvent(WARNING, reason, message, container), failed(container, reason))
    if reason == "InvalidImageName":
        return (RecordEvent(WARNING, "InspectFailed", message, container), failed(container, reason))
    if reason in ("ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"):
        text = f'Failed to pull image "{image}": {message}'
        return (RecordEvent(WARNING, "Failed", text, container), failed(container, reason))
    if reason == "RunContainerError":
        return (created(container), failed(container, message))
    return (failed(container, message),)


def no_sandbox(message: str) -> RecordEvent:
    return RecordEvent(WARNING, "FailedCreatePodSandBox", f"Failed to create pod sandbox: {message}")


def failed_hook(container: str, kind: str) -> RecordEvent:
    name = "PostStartHook" if kind == "postStart" else "PreStopHook"
    return RecordEvent(WARNING, f"Failed{name}", f"{name} failed", container)
