"""A pod as the scheduler and its plugins see it. `EventHandlers` make a view of every version of a pod.

Everything a plugin may want is worked out when first asked for and kept. `signature` is what the profile of the pod
makes of the fields its plugins declare (`signature.py`).
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.host_ports import host_ports
from nodeward.rules.pod_resources import pod_requests
from nodeward.scheduler.framework.signature import PodSigner

#: What a container that asks for nothing is taken to use when nodes are compared, as in Kubernetes.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024


class PodView:
    """One version of one pod. Never changes; a changed pod is another view."""

    # What is worked out late is kept by hand: a cached_property takes a lock, which costs more than most of it.
    __slots__ = (
        "_host_ports",
        "_requests",
        "key",
        "labels",
        "name",
        "namespace",
        "pod",
        "priority",
        "signature",
        "signer",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        self._requests: dict[str, int] | None = None
        self._host_ports: tuple[tuple[str, str, int], ...] | None = None
        #: equal for pods that no plugin of their profile tells apart; None until `signer` has signed it
        self.signature: bytes | None = None
        self.signer: PodSigner | None = None
        self.pod: Final = pod
        self.uid: Final = pod.metadata.uid
        self.namespace: Final = pod.metadata.namespace
        self.name: Final = pod.metadata.name
        self.key: Final = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.priority: Final = pod.spec.priority or 0
        self.labels: Final = pod.metadata.labels

    @property
    def requests(self) -> dict[str, int]:
        """What it asks for: cpu in millicores, everything else in whole units. Zero requests are left out."""
        found = self._requests
        if found is None:
            found = self._requests = _requests(self)
        return found

    @property
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(address, protocol, port) it wants on its node."""
        found = self._host_ports
        if found is None:
            found = self._host_ports = host_ports(self.pod.spec)
        return found

    def __repr__(self) -> str:
        return f"PodView({self.key})"


def _requests(view: PodView) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, quantity in pod_requests(view.pod).items():
        amount = quantity.milli_value if name == "cpu" else quantity.value
        if amount:
            found[name] = amount
    return found
