"""All authorizers in their order: the group `system:masters`, then nodes, then RBAC. The first decision counts."""

from __future__ import annotations

from nodeward.api.rbac_v1 import PolicyRule
from nodeward.apiserver.auth.forbidden import forbidden
from nodeward.apiserver.auth.node_authorizer import NodeAuthorizer, node_name
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.user import (
    ALLOWED,
    MASTERS,
    NO_OPINION,
    NODE_PREFIX,
    Attributes,
    Authorization,
    AuthorizerDecision,
    User,
)


class Authorizers:
    """The chain of authorizers. `nodes` may be left out."""

    __slots__ = ("nodes", "rbac")

    def __init__(self, rbac: RbacAuthorizer, nodes: NodeAuthorizer | None = None) -> None:
        self.rbac = rbac
        self.nodes = nodes

    def authorize(self, attributes: Attributes) -> Authorization:
        user = attributes.user
        if MASTERS in user.groups:
            return ALLOWED
        reasons = []
        if self.nodes is not None and user.name.startswith(NODE_PREFIX):
            decision = self.nodes.authorize(attributes)
            if decision.verdict is not AuthorizerDecision.NO_OPINION:
                return decision
            if decision.reason:
                reasons.append(f"node: {decision.reason}")
        decision = self.rbac.authorize(attributes)
        if decision.is_allowed:
            return decision
        # No authorizer allowed it: the caller sees every reason, and whose it is.
        if decision.reason:
            reasons.append(f"rbac: {decision.reason}")
        return Authorization(AuthorizerDecision.NO_OPINION, "\n".join(reasons)) if reasons else NO_OPINION

    def require(self, attributes: Attributes) -> None:
        """Raise 403 unless the request is allowed."""
        decision = self.authorize(attributes)
        if not decision.is_allowed:
            raise forbidden(attributes, decision.reason)

    def rules_for(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str], bool]:
        """Return the rules granted by RBAC, errors met, and whether they are incomplete."""
        rules, faults = self.rbac.rules_for(user, namespace)
        is_node = self.nodes is not None and node_name(user) is not None
        if is_node:
            faults = ["node authorizer does not support user rule resolution", *faults]
        return rules, faults, is_node
