"""The node authorizer: a node may use its own Node, Lease and CSINode, and the objects its pods refer to.

A node is a user called `system:node:<name>` in the group `system:nodes`. What depends on the object is decided here
with the graph; the rest follows the fixed rules of the role `system:node`. This authorizer allows or has no opinion,
with a reason. What a node may write into an object is for the NodeRestriction admission plugin.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container
from typing import Final, TypeAlias

from nodeward.api.rbac_v1 import PolicyRule
from nodeward.apiserver.auth.bootstrap_policy import node_rules
from nodeward.apiserver.auth.node_graph import NodeGraph
from nodeward.apiserver.auth.rules import ALL
from nodeward.apiserver.auth.user import (
    ALLOWED,
    NO_OPINION,
    NODE_PREFIX,
    NODES,
    Attributes,
    Authorization,
    AuthorizerDecision,
    User,
)
from nodeward.base.fielderror import quote
from nodeward.base.invariant import invariant

_READS: Final = ("get", "list", "watch")
_LEASES: Final = "kube-node-lease"
_OWN: Final = ("get", "create", "update", "patch", "delete")


def node_name(user: User) -> str | None:
    """Return the node that `user` is; None if it is none, empty if it has no name."""
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name[len(NODE_PREFIX) :]


class NodeAuthorizer:
    """Decides for nodes, by `graph`; has no opinion on other users."""

    __slots__ = ("_by_resource", "_gates", "_granted", "_graph")

    def __init__(self, graph: NodeGraph, gates: Container[str] = ()) -> None:
        self._graph = graph
        self._gates = gates
        self._granted = _granted(node_rules(gates))
        self._by_resource: dict[tuple[str, str], _Check] = {
            ("", "secrets"): self._read_one,
            ("", "configmaps"): self._read_one,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get,
            ("", "serviceaccounts"): self._service_account,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("coordination.k8s.io", "leases"): self._lease,
        }

    def authorize(self, attributes: Attributes) -> Authorization:
        node = node_name(attributes.user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no(f"unknown node for user {quote(attributes.user.name)}")
        if not attributes.is_resource_request:
            return NO_OPINION
        check = self._by_resource.get((attributes.group, attributes.resource))
        if check is not None:
            return check(node, attributes)
        wanted = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        return ALLOWED if wanted in self._granted else NO_OPINION

    def _related(self, node: str, asked: Attributes) -> Authorization:
        if not asked.name:
            return _no("No Object name found")
        if self._graph.is_related(node, asked.resource, asked.namespace, asked.name):
            return ALLOWED
        return _no(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, asked: Attributes) -> Authorization:
        if asked.verb != "get":
            return _no("can only get individual resources of this type")
        if asked.subresource:
            return _no("cannot get subresource")
        return self._related(node, asked)

    def _read_one(self, node: str, asked: Attributes) -> Authorization:
        if asked.verb not in _READS:
            return _no("can only read resources of this type")
        if asked.subresource:
            return _no("cannot read subresource")
        if not asked.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, asked)

    def _claim(self, node: str, asked: Attributes) -> Authorization:
        if asked.subresource != "status":
            return self._get(node, asked)
        if asked.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, asked)

    def _service_account(self, node: str, asked: Attributes) -> Authorization:
        if asked.verb == "get" and not asked.subresource:
            return self._read_one(node, asked)
        if asked.verb != "create" or not asked.name:
            return _no("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, asked)

    def _lease(self, node: str, asked: Attributes) -> Authorization:
        if asked.verb not in _OWN:
            return _no("can only get, create, update, patch, or delete a node lease")
        if asked.namespace != _LEASES:
            return _no(f"can only access leases in the {quote(_LEASES)} system namespace")
        # A create has no name yet; admission checks it.
        if asked.verb != "create" and asked.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return ALLOWED

    def _csi_node(self, node: str, asked: Attributes) -> Authorization:
        match asked.subresource:
            case "":
                if asked.verb not in _OWN:
                    return _no("can only get, create, update, patch, or delete a CSINode")
            case "status":
                if "CSIVolumeHealth" not in self._gates:
                    return _no("CSINode status access requires CSIVolumeHealth feature")
                if asked.verb not in ("get", "update", "patch"):
                    return _no("can only get, update, or patch CSINode status")
            case _:
                return _no("cannot authorize CSINode subresources")
        if asked.verb != "create" and asked.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return ALLOWED

    def _slice(self, node: str, asked: Attributes) -> Authorization:
        if asked.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match asked.verb:
            case "create":
                return ALLOWED
            case "get" | "update" | "patch" | "delete":
                return self._related(node, asked)
            case "watch" | "list" | "deletecollection":
                if ("spec.nodeName", node, True) in asked.field_selector:
                    return ALLOWED
                return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            case _:
                return _no(
                    "only the following verbs are allowed for a ResourceSlice: "
                    "get, watch, list, create, update, patch, delete, deletecollection"
                )

    def _node(self, node: str, asked: Attributes) -> Authorization:
        # Compared by name, not by the graph: a node reads its Node before it creates it.
        match asked.subresource, asked.verb:
            case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
                return ALLOWED
            case "", "get" | "list" | "watch":
                if asked.name == node:
                    return ALLOWED
                if not asked.name:
                    return _no(f"node '{node}' cannot read all nodes, only its own Node object")
                return _no(f"node '{node}' cannot read '{asked.name}', only its own Node object")
            case _:
                return NO_OPINION

    def _pod(self, node: str, asked: Attributes) -> Authorization:
        match asked.subresource, asked.verb:
            case "", "get":
                return self._get(node, asked)
            case "", "list" | "watch":
                if ("spec.nodeName", node, True) in asked.field_selector:
                    return ALLOWED
                if asked.name:
                    return self._related(node, asked)
                return _no("can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return ALLOWED
            case _:
                return NO_OPINION


def _granted(rules: list[PolicyRule]) -> frozenset[tuple[str, str, str, str]]:
    """Return plain rules as the set of what they grant: verb, group, resource, subresource."""
    found = set()
    for rule in rules:
        is_plain = not rule.resource_names and not rule.non_resource_urls
        invariant(
            is_plain and ALL not in (*rule.verbs, *rule.api_groups, *rule.resources),
            "a node rule is not plain",
        )
        for verb, group, thing in itertools.product(rule.verbs, rule.api_groups, rule.resources):
            resource, _, subresource = thing.partition("/")
            found.add((verb, group, resource, subresource))
    return frozenset(found)


_Check: TypeAlias = Callable[[str, Attributes], Authorization]


def _no(reason: str) -> Authorization:
    return Authorization(AuthorizerDecision.NO_OPINION, reason)
