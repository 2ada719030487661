"""The pod, its node and the container that a log or exec request means. Called by `log.py` and `stream.py`."""

from __future__ import annotations

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import bad_request, not_found
from nodeward.apiserver.api import Api
from nodeward.apiserver.request import Call


async def find_pod(api: Api, call: Call) -> Pod:
    """Return the pod at the store's newest revision: it may have been created a moment ago through another server."""
    await api.env.hub.fresh()
    pod = api.env.peek(Pod, call.name, call.namespace)
    if pod is None:
        raise not_found("", "pods", call.name)
    return pod


def chosen_container(pod: Pod, wanted: str) -> str:
    """Return the container that is meant; without a name the pod must have exactly one."""
    spec = pod.spec
    names = [each.name for each in (*spec.init_containers, *spec.containers)]
    names.extend(each.name for each in spec.ephemeral_containers)
    name = pod.metadata.name
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(spec.containers) == 1:
        return spec.containers[0].name
    if not spec.containers:
        raise bad_request(f"a container name must be specified for pod {name}")
    raise bad_request(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
    )


def node_of(api: Api, pod: Pod) -> Node:
    node = api.env.peek(Node, pod.spec.node_name)
    if node is None:
        raise not_found("", "nodes", pod.spec.node_name)
    return node
