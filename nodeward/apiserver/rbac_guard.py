"""RBAC escalation prevention: a role or binding may not grant more than its writer may do.

Always on, whatever admission plugins are chosen. The verbs `escalate` and `bind` lift it. Runs in the admission chain;
the checks are in `auth/escalation.py`.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.auth.escalation import check_binding, check_role
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.security import Security


class RbacGuard(AdmissionPlugin):
    """The admission step that calls the escalation checks."""

    name: ClassVar[str] = "RBAC"

    def __init__(self, env: Environment, security: Security) -> None:
        super().__init__(env)
        self._security = security

    def validate(self, write: Write) -> None:
        rbac, authorize = self._security.rbac, self._security.authorizers.authorize
        match write.new:
            case ClusterRole() | Role() as role:
                check_role(rbac, authorize, write.user, role, write.old)
            case ClusterRoleBinding() | RoleBinding() as binding:
                check_binding(rbac, authorize, write.user, binding)
