"""Nobody gives away more than they have: writes of roles and bindings are checked against what the writer may do.

Always on, whatever admission plugins are chosen. The `escalate` and `bind` verbs are the way around it.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.apiserver.admission.plugin import Plugin, Write
from nodeward.apiserver.auth.escalation import check_binding, check_role
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.security import Security


class RbacGuard(Plugin):
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
