"""How pods and containers are marked in the runtime, so that any agent finds them again.

The names are the kubelet's: tools such as crictl and log collectors read them.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod

POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
CONTAINER_NAME: Final = "io.kubernetes.container.name"
#: annotations
RESTART_COUNT: Final = "io.kubernetes.container.restartCount"
MESSAGE_PATH: Final = "io.kubernetes.container.terminationMessagePath"
MESSAGE_POLICY: Final = "io.kubernetes.container.terminationMessagePolicy"
GRACE_PERIOD: Final = "io.kubernetes.pod.terminationGracePeriod"


def pod_labels(pod: Pod) -> dict[str, str]:
    meta = pod.metadata
    return {
        **meta.labels,
        POD_NAME: meta.name,
        POD_NAMESPACE: meta.namespace,
        POD_UID: meta.uid,
    }


def container_labels(pod: Pod, name: str) -> dict[str, str]:
    meta = pod.metadata
    return {CONTAINER_NAME: name, POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid}


def container_annotations(pod: Pod, container: Container, attempt: int) -> dict[str, str]:
    said = {
        RESTART_COUNT: str(attempt),
        MESSAGE_PATH: container.termination_message_path,
        MESSAGE_POLICY: container.termination_message_policy,
    }
    if pod.spec.termination_grace_period_seconds is not None:
        said[GRACE_PERIOD] = str(pod.spec.termination_grace_period_seconds)
    return said
