"""The events of resizes: one function for each text, with the pod's resources as JSON.

What must stay true: reasons, words and the order of keys are upstream's, since people and alerts search for them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.pods.event_texts import NORMAL, WARNING
from nodeward.kubelet.pods.resource_info import resources_tree

INFEASIBLE = "Infeasible"


def resize_started(pod: Pod, generation: int) -> RecordEvent:
    return RecordEvent(NORMAL, "ResizeStarted", f"Pod resize started: {_summary(pod, generation)}")


def resize_completed(pod: Pod, generation: int) -> RecordEvent:
    return RecordEvent(NORMAL, "ResizeCompleted", f"Pod resize completed: {_summary(pod, generation)}")


def resize_pending(pod: Pod, reason: str, message: str, generation: int) -> RecordEvent:
    name = "ResizeInfeasible" if reason == INFEASIBLE else "ResizeDeferred"
    return RecordEvent(WARNING, name, f"Pod resize {reason}: {_summary(pod, generation, message)}")


def resize_error(pod: Pod, generation: int, message: str) -> RecordEvent:
    return RecordEvent(WARNING, "ResizeError", f"Pod resize error: {_summary(pod, generation, message)}")


def _summary(pod: Pod, generation: int, error: str = "") -> str:
    summary: dict[str, Any] = {}
    if pod.spec.init_containers:
        summary["initContainers"] = [_container(each) for each in pod.spec.init_containers]
    if pod.spec.containers:
        summary["containers"] = [_container(each) for each in pod.spec.containers]
    summary["generation"] = generation
    if error:
        summary["error"] = error
    text = msgspec.json.encode(summary).decode()
    # As Go writes JSON: what could be taken for HTML is escaped.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _container(container: Container) -> dict[str, Any]:
    return {"name": container.name, "resources": resources_tree(container.resources)}
