"""Privilege escalation checks before a role or a binding is written: nobody grants what they do not hold.

Called by `rbac_guard.py`. A member of `system:masters` may grant anything; so may a user with the verb `escalate` on
the role, or `bind` on the role that a binding refers to. Everybody else must hold every permission they grant.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeward.api import errors
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.rules import ALL, compact, covers, describe, quote_list
from nodeward.apiserver.auth.user import MASTERS, Attributes, Authorize, User
from nodeward.base.fielderror import quote

GROUP = "rbac.authorization.k8s.io"

_EVERYTHING = (
    PolicyRule(verbs=[ALL], api_groups=[ALL], resources=[ALL]),
    PolicyRule(verbs=[ALL], non_resource_urls=[ALL]),
)


def not_held(rbac: RbacAuthorizer, user: User, namespace: str, rules: Sequence[PolicyRule]) -> str:
    """Return the permissions `user` would grant without holding them, as the message; empty when all are held."""
    held, unresolved = rbac.rules_for(user, namespace)
    uncovered = covers(held, rules)
    if not uncovered:
        return ""
    lines = "\n".join(sorted({describe(rule) for rule in compact(uncovered)}))
    message = (
        f"user {quote(user.name)} (groups={quote_list(user.groups)}) "
        f"is attempting to grant RBAC permissions not currently held:\n{lines}"
    )
    return f"{message}; resolution errors: [{' '.join(unresolved)}]" if unresolved else message


def check_role(
    rbac: RbacAuthorizer,
    authorize: Authorize,
    user: User,
    role: Role | ClusterRole,
    old: Role | ClusterRole | None = None,
) -> None:
    """Refuse (403) a role, new or changed, with more than `user` holds. Call it for writes that change the role."""
    resource = "clusterroles" if isinstance(role, ClusterRole) else "roles"
    meta = role.metadata
    # A create has no name in its URL, so a grant limited to names does not help there.
    url_name = "" if old is None else meta.name
    if MASTERS in user.groups or _may(authorize, user, "escalate", resource, meta.namespace, url_name):
        return
    if why := not_held(rbac, user, meta.namespace, role.rules):
        raise errors.forbidden(GROUP, resource, meta.name, why)
    # An aggregated role can gather anything, so whoever defines one must hold everything.
    if (_is_aggregated(role) or _is_aggregated(old)) and not_held(rbac, user, meta.namespace, _EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise errors.forbidden(GROUP, resource, meta.name, why)


def check_binding(
    rbac: RbacAuthorizer, authorize: Authorize, user: User, binding: RoleBinding | ClusterRoleBinding
) -> None:
    """Refuse (403) a binding of a role with more than `user` holds; 404 when there is no such role."""
    is_cluster_wide = isinstance(binding, ClusterRoleBinding)
    resource = "clusterrolebindings" if is_cluster_wide else "rolebindings"
    namespace = "" if is_cluster_wide else binding.metadata.namespace
    ref = binding.role_ref
    roles = "clusterroles" if ref.kind == "ClusterRole" else "roles"
    if MASTERS in user.groups or _may(authorize, user, "bind", roles, namespace, ref.name):
        return
    rules = rbac.role_rules(ref, namespace)
    if rules is None:
        raise errors.not_found(GROUP, roles, ref.name)
    if why := not_held(rbac, user, namespace, rules):
        raise errors.forbidden(GROUP, resource, binding.metadata.name, why)


def _is_aggregated(role: Role | ClusterRole | None) -> bool:
    return (
        isinstance(role, ClusterRole)
        and role.aggregation_rule is not None
        and bool(role.aggregation_rule.cluster_role_selectors)
    )


def _may(authorize: Authorize, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
    wanted = Attributes(
        user=user, verb=verb, group=GROUP, version=ALL, resource=resource, namespace=namespace, name=name
    )
    return authorize(wanted).is_allowed
