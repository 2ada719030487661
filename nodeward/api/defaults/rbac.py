"""Defaults of role bindings: the group that roles, users and groups belong to."""

from __future__ import annotations

from typing import Final

from nodeward.api.rbac_v1 import ClusterRoleBinding, RoleBinding

_GROUP: Final = "rbac.authorization.k8s.io"


def default_binding(binding: RoleBinding | ClusterRoleBinding) -> None:
    binding.role_ref.api_group = binding.role_ref.api_group or _GROUP
    for subject in binding.subjects:
        if not subject.api_group and subject.kind in ("User", "Group"):
            subject.api_group = _GROUP
