"""NodeRestriction: a kubelet may write only what belongs to its own node.

Authorization decides by names alone; this plugin checks the content. A node may create mirror pods, delete and evict
its pods and report their status; write its own Node (`node_restriction_node`), lease, CSINode and resource slices;
report grown volumes; and request tokens of the accounts its pods run as (`node_restriction_tokens`). Other users are
not checked.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from nodeward.api.codec import decoder, encode, to_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.errors import not_found
from nodeward.apiserver.admission.node_restriction_node import check_node
from nodeward.apiserver.admission.node_restriction_tokens import check_token
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.auth.user import NODE_PREFIX, NODES, User
from nodeward.base.fielderror import quote
from nodeward.rules.pod_references import MIRROR, api_reference

LEASES: Final = "kube-node-lease"


class NodeRestriction(AdmissionPlugin):
    name: ClassVar[str] = "NodeRestriction"

    def admit(self, write: Write) -> None:
        if write.operation != "DELETE":
            self._check(write)

    def validate(self, write: Write) -> None:
        # `admit` is not called for deletes, so `validate` checks them.
        if write.operation == "DELETE":
            self._check(write)

    def _check(self, write: Write) -> None:
        node = node_of(write.user)
        if node is None:
            return
        if not node:
            raise write.refuse(f"could not determine node from user {quote(write.user.name)}")
        match write.kind.group, write.kind.resource:
            case "", "pods":
                self._check_pod(node, write)
            case "", "nodes":
                check_node(node, write)
            case "", "persistentvolumeclaims":
                _check_claim(node, write)
            case "", "serviceaccounts":
                if write.operation == "CREATE" and write.subresource == "token":
                    check_token(node, write, self.env)
            case "coordination.k8s.io", "leases":
                _check_lease(node, write)
            case "storage.k8s.io", "csinodes":
                if write.name != node:
                    raise write.refuse("can only access CSINode with the same name as the requesting node")
            case "resource.k8s.io", "resourceslices":
                _check_slice(node, write)

    # -- pods

    def _check_pod(self, node: str, write: Write) -> None:
        if write.subresource == "status":
            _check_pod_status(node, write)
        elif write.subresource == "eviction":
            self._check_eviction(node, write)
        elif write.subresource:
            raise write.refuse(
                f"unexpected pod subresource {quote(write.subresource)}, only 'status' and 'eviction' are allowed"
            )
        elif write.operation == "CREATE":
            self._check_mirror(node, write)
        elif write.operation == "DELETE":
            if write.old.spec.node_name != node:
                raise write.refuse(
                    f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                )
        else:
            raise write.refuse(
                f"unexpected operation {quote(write.operation)}, "
                f"node {quote(node)} can only create and delete mirror pods"
            )

    def _check_eviction(self, node: str, write: Write) -> None:
        pod = self.env.peek(Pod, write.name, write.namespace)
        if pod is None:
            raise not_found("", "pods", write.name)
        if pod.spec.node_name != node:
            raise write.refuse(f"node {node} can only evict pods with spec.nodeName set to itself")

    def _check_mirror(self, node: str, write: Write) -> None:
        pod: Pod = write.new
        me = f"node {quote(node)}"
        if MIRROR not in pod.metadata.annotations:
            raise write.refuse(
                f"pod does not have {quote(MIRROR)} annotation, {me} can only create mirror pods"
            )
        if pod.spec.node_name != node:
            raise write.refuse(f"{me} can only create pods with spec.nodeName set to itself")
        owners = pod.metadata.owner_references
        if len(owners) > 1:
            raise write.refuse(f"{me} can only create pods with a single owner reference set to itself")
        if not owners or (owners[0].api_version, owners[0].kind, owners[0].name) != ("v1", "Node", node):
            raise write.refuse(f"{me} can only create pods with an owner reference set to itself")
        owner = owners[0]
        if not owner.controller:
            raise write.refuse(f"{me} can only create pods with a controller owner reference set to itself")
        if owner.block_owner_deletion:
            raise write.refuse(f"{me} must not set blockOwnerDeletion on an owner reference")
        known = self.env.peek(Node, node)
        if known is None:
            raise not_found("", "nodes", node)
        if owner.uid != known.metadata.uid:
            raise write.refuse(f"node {node} UID mismatch: expected {owner.uid} got {known.metadata.uid}")
        reference = api_reference(pod.spec)
        if reference:
            raise write.refuse(f"{me} can not create pods that reference {reference}")


def node_of(user: User) -> str | None:
    """Return the node a user is, "" for a node without a name, None for everybody else."""
    if user.name.startswith(NODE_PREFIX) and NODES in user.groups:
        return user.name.removeprefix(NODE_PREFIX)
    return None


def _check_pod_status(node: str, write: Write) -> None:
    if write.operation != "UPDATE":
        raise write.refuse(f"unexpected operation {quote(write.operation)}")
    new: Pod = write.new
    old: Pod = write.old
    me = f"node {quote(node)}"
    if old.spec.node_name != node:
        raise write.refuse(f"{me} can only update pod status for pods with spec.nodeName set to itself")
    if new.metadata.labels != old.metadata.labels:
        raise write.refuse(f"{me} cannot update labels through pod status")
    if new.status.resource_claim_statuses != old.status.resource_claim_statuses:
        raise write.refuse(f"{me} cannot update resource claim statues")
    if new.status.extended_resource_claim_status != old.status.extended_resource_claim_status:
        raise write.refuse(f"{me} cannot update extended resource claim status")
    before = old.status.node_allocatable_resource_claim_statuses
    if new.status.node_allocatable_resource_claim_statuses != before:
        raise write.refuse(f"{me} cannot update node allocatable resource claim statuses")


def _check_claim(node: str, write: Write) -> None:
    """Let a node report the new size of a volume it has grown, and nothing else."""
    if write.subresource != "status":
        raise write.refuse("may only update PVC status")
    if write.operation != "UPDATE":
        raise write.refuse(f"unexpected operation {quote(write.operation)}")
    new, old = _without_size(write.new), _without_size(write.old)
    if new != old:
        changed = [
            f"{part}.{field}"
            for part in ("metadata", "spec", "status")
            for field in sorted({*new.get(part, {}), *old.get(part, {})})
            if new.get(part, {}).get(field) != old.get(part, {}).get(field)
        ]
        raise write.refuse(
            f"node {quote(node)} is not allowed to update fields other than status.quantity and "
            f"status.conditions: {', '.join(changed)}"
        )


def _without_size(claim: PersistentVolumeClaim) -> dict[str, Any]:
    copy = decoder(PersistentVolumeClaim).decode(encode(claim))
    copy.kind = copy.api_version = copy.metadata.resource_version = ""
    copy.metadata.managed_fields = []
    copy.status.capacity = copy.status.allocated_resources = {}
    copy.status.allocated_resource_statuses = {}
    copy.status.conditions = []
    tree: dict[str, Any] = to_tree(copy)
    return tree


def _check_lease(node: str, write: Write) -> None:
    if write.namespace != LEASES:
        raise write.refuse(f"can only access leases in the {quote(LEASES)} system namespace")
    if write.name != node:
        raise write.refuse("can only access node lease with the same name as the requesting node")


def _check_slice(node: str, write: Write) -> None:
    """Refuse a slice of another node. Updates are left to the authorizer, which knows whose slice a name is."""
    if write.operation == "CREATE" and write.new.spec.node_name != node:
        raise write.refuse("can only create ResourceSlice with the same NodeName as the requesting node")
    if write.operation == "DELETE" and write.old.spec.node_name != node:
        raise write.refuse("can only delete ResourceSlice with the same NodeName as the requesting node")
