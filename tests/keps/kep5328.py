"""Nodes that declare and pods that change, as clients send them, and a feature that no component has heard of."""

from __future__ import annotations

from typing import Any

from nodeward.features.declared import Feature, Framework, PodInfo, Requirements
from tests.apiserver.running import Caller

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
INIT = "InPlacePodVerticalScalingInitContainers"

#: An invented feature. Nodes have it with a gate that changes nothing else here; pods on the node's network need it to
#: be placed, and every pod needs it to have the resources of a container changed.
LEVITATION = "Levitation"
LEVITATION_ON = "CPUManagerPolicyAlphaOptions=true"


def _has_resized_containers(old: PodInfo, new: PodInfo) -> bool:
    pairs = zip(old.spec.containers, new.spec.containers, strict=True)
    return any(before.resources != after.resources for before, after in pairs)


INVENTED = Framework(
    [
        Feature(
            name=LEVITATION,
            requirements=Requirements(("CPUManagerPolicyAlphaOptions",)),
            scheduling_rule=lambda info: info.spec.host_network,
            update_rule=_has_resized_containers,
        )
    ]
)


def node(*declared: str, name: str = "n1") -> dict[str, Any]:
    status: dict[str, Any] = {"capacity": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
    if declared:
        status["declaredFeatures"] = list(declared)
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def declaring(*declared: str) -> dict[str, Any]:
    return {"status": {"declaredFeatures": list(declared)}}


async def add_node(caller: Caller, *declared: str, name: str = "n1") -> None:
    status, answer = await caller.json("POST", NODES, node(*declared, name=name))
    assert status == 201, answer


async def declare(caller: Caller, *declared: str, name: str = "n1") -> tuple[int, Any]:
    """What a kubelet does when its list has changed."""
    path = f"{NODES}/{name}/status"
    return await caller.json("PATCH", path, declaring(*declared), content_type=MERGE)


async def add_pod(caller: Caller, *, node: str = "n1", name: str = "p", **spec: Any) -> None:
    """A pod, bound to a node unless that is empty."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }
    status, answer = await caller.json("POST", PODS, body)
    assert status == 201, answer
    if node:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        status, answer = await caller.json("POST", f"{PODS}/{name}/binding", binding)
        assert status == 201, answer


def asking(cpu: str) -> dict[str, Any]:
    """Resources of a pod as a whole."""
    return {"requests": {"cpu": cpu, "memory": "1Gi"}}


async def change(caller: Caller, spec: dict[str, Any], subresource: str = "resize", name: str = "p") -> Any:
    """Change a pod; the code and the message of a refusal, or the new spec."""
    path = f"{PODS}/{name}/{subresource}".rstrip("/")
    status, answer = await caller.json(
        "PATCH", path, {"spec": spec}, content_type="application/strategic-merge-patch+json"
    )
    return answer["spec"] if status == 200 else (status, answer["message"])


def lacking(*features: str, node: str = "n1", pod: str = "p") -> tuple[int, str]:
    """The refusal of a change the node has no features for."""
    why = f'pod update requires features {", ".join(features)} which are not available on node "{node}"'
    return 403, f'pods "{pod}" is forbidden: {why}'
