"""Printers of role bindings."""

from __future__ import annotations

from nodeward.api.printing.cells import age
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer, wide
from nodeward.api.rbac_v1 import ClusterRoleBinding, RoleBinding


def _binding(binding: RoleBinding | ClusterRoleBinding, now_ns: int) -> Cells:
    def subjects(kind: str) -> str:
        names = (
            f"{s.namespace}/{s.name}" if kind == "ServiceAccount" else s.name
            for s in binding.subjects
            if s.kind == kind
        )
        return ", ".join(names)

    return [
        binding.metadata.name,
        f"{binding.role_ref.kind}/{binding.role_ref.name}",
        age(binding, now_ns),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]


BINDING = Printer(
    (
        NAME,
        Column("Role", description="Role that is given."),
        AGE,
        wide("Users", "Users who have the role."),
        wide("Groups", "Groups whose members have the role."),
        wide("ServiceAccounts", "Service accounts that have the role."),
    ),
    _binding,
)
