"""Which waiting pods have a nominated node, on which preemption makes room for them.

Preemption nominates a node before the API server knows of it. While the pod waits, pods of lower or equal priority are
placed as if it were already there.

What must stay true: a pod is nominated for at most one node, and always in its newest version; an update that never
heard of the nomination does not take it away.
"""

from __future__ import annotations

from nodeward.scheduler.framework.pod import PodView


def written_node(pod: PodView) -> str:
    """The nominated node as the pod's status has it."""
    return pod.pod.status.nominated_node_name


class Nominator:
    """Nominations by node and by pod."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodView]] = {}
        self._node_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, pod: PodView, node: str | None = None) -> None:
        """Nominate `node` ("" for none); None: the one in the pod's status."""
        self.delete(pod.uid)
        if node is None:
            node = written_node(pod)
        if node:
            self._node_of[pod.uid] = node
            self._by_node.setdefault(node, {})[pod.uid] = pod

    def update(self, old: PodView, new: PodView) -> None:
        """The pod changed: what the status says counts, unless it said and says nothing."""
        if old.uid != new.uid:
            self.delete(old.uid)
        known = self._node_of.get(new.uid)
        if known is None and not written_node(new):
            return
        is_silent = not written_node(old) and not written_node(new)
        if known is not None and (is_silent or known == written_node(new)):
            self._by_node[known][new.uid] = new
            return
        self.add(new)

    def delete(self, uid: str) -> None:
        """The pod is gone, or has its place. Nothing happens if it was not nominated."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._by_node[node]
        del pods[uid]
        if not pods:
            del self._by_node[node]

    def for_node(self, node: str) -> list[PodView]:
        """The pods nominated for it, in the order they were."""
        return list(self._by_node.get(node, {}).values())

    def nodes(self) -> list[str]:
        """Every node that is promised to somebody."""
        return list(self._by_node)

    def node_of(self, uid: str) -> str:
        """The node promised to the pod, or ""."""
        return self._node_of.get(uid, "")
