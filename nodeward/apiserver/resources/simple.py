"""Strategies of kinds that differ from the plain `Strategy` in attributes only."""

from __future__ import annotations

from nodeward.apiserver.resources.strategy import METADATA_PATHS, Strategy


def _facts(name: str, **facts: object) -> type[Strategy]:
    return type(name, (Strategy,), facts)


_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_DRA = "resource.k8s.io"

SIMPLE: dict[tuple[str, str], type[Strategy]] = {
    ("", "endpoints"): _facts("Endpoints", creates_on_update=True),
    ("", "limitranges"): _facts("LimitRanges", creates_on_update=True),
    ("", "resourcequotas"): _facts("ResourceQuotas", answers_deleted=True),
    ("", "secrets"): _facts("Secrets", selectable=("type",)),
    ("coordination.k8s.io", "leases"): _facts(
        "Leases", creates_on_update=True, allows_unconditional_update=False
    ),
    ("node.k8s.io", "runtimeclasses"): _facts(
        "RuntimeClasses", creates_on_update=True, allows_unconditional_update=False
    ),
    (_RBAC, "clusterroles"): _facts("ClusterRoles", creates_on_update=True),
    (_RBAC, "clusterrolebindings"): _facts("ClusterRoleBindings", creates_on_update=True),
    (_RBAC, "roles"): _facts("Roles", creates_on_update=True),
    (_RBAC, "rolebindings"): _facts("RoleBindings", creates_on_update=True),
    (_STORAGE, "csinodes"): _facts(
        "CSINodes", allows_unconditional_update=False, answers_deleted=True, status_reset=METADATA_PATHS
    ),
    (_STORAGE, "csistoragecapacities"): _facts("CSIStorageCapacities", allows_unconditional_update=False),
    (_STORAGE, "storageclasses"): _facts("StorageClasses", answers_deleted=True),
    (_STORAGE, "volumeattachments"): _facts(
        "VolumeAttachments",
        allows_unconditional_update=False,
        answers_deleted=True,
        status_reset=METADATA_PATHS,
    ),
    (_STORAGE, "volumeattributesclasses"): _facts("VolumeAttributesClasses", answers_deleted=True),
    (_DRA, "deviceclasses"): _facts("DeviceClasses", counts_generations=True, answers_deleted=True),
    ("policy", "poddisruptionbudgets"): _facts(
        "PodDisruptionBudgets", counts_generations=True, allows_unconditional_update=False
    ),
    ("readiness.node.x-k8s.io", "nodereadinessrules"): _facts(
        "NodeReadinessRules",
        counts_generations=True,
        selectable=("spec.enforcementMode", "spec.taint.key", "spec.dryRun"),
        status_reset=METADATA_PATHS,
    ),
}
