"""The default RBAC objects of a cluster, made from the tables in `bootstrap_roles` and `bootstrap_controllers`.

`bootstrap_objects` returns what Kubernetes 1.37 would create; `reconcile.py` decides what to write when some of it
exists. Aggregated roles come without rules: `rules.aggregate` adds them up.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta
from nodeward.api.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from nodeward.apiserver.auth import bootstrap_controllers as controllers
from nodeward.apiserver.auth import bootstrap_roles as table
from nodeward.base.invariant import invariant

GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{GROUP}/v1"
BOOTSTRAPPING = ("kubernetes.io/bootstrapping", "rbac-defaults")
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"

_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
    "record": ("create", "patch", "update"),
}


def bootstrap_objects(gates: Container[str] = ()) -> list[KubeObject]:
    """Return cluster roles, cluster role bindings, roles, role bindings; `gates` are the enabled gates."""
    return [
        *_cluster_roles(gates),
        *_cluster_role_bindings(gates),
        *(
            Role(kind="Role", api_version=API_VERSION, metadata=_metadata(name, namespace), rules=parse(text))
            for (namespace, name), text in table.ROLES.items()
        ),
        *(
            RoleBinding(
                kind="RoleBinding",
                api_version=API_VERSION,
                metadata=_metadata(name, namespace),
                subjects=_subjects(subjects),
                role_ref=RoleRef(api_group=GROUP, kind="Role", name=role),
            )
            for (namespace, name), (role, subjects) in table.ROLE_BINDINGS.items()
        ),
    ]


def node_rules(gates: Container[str] = ()) -> list[PolicyRule]:
    """Return what every node may do; the node authorizer narrows it down."""
    return _rules("system:node", table.CLUSTER_ROLES["system:node"], gates)


def _controllers(gates: Container[str]) -> Iterator[tuple[str, str]]:
    gated = ((name, text) for gate, name, text in controllers.GATED_CONTROLLERS if gate in gates)
    for name, text in (*controllers.CONTROLLER_ROLES.items(), *gated):
        yield controllers.PREFIX + name, text


def _cluster_roles(gates: Container[str]) -> Iterator[ClusterRole]:
    for name, text in (*table.CLUSTER_ROLES.items(), *_controllers(gates)):
        metadata = _metadata(name)
        if (fed := table.FEEDS.get(name)) is not None:
            metadata.labels[f"{GROUP}/aggregate-to-{fed}"] = "true"
        aggregation = None
        if (gathered := table.AGGREGATES.get(name)) is not None:
            selector = LabelSelector(match_labels={f"{GROUP}/aggregate-to-{gathered}": "true"})
            aggregation = AggregationRule(cluster_role_selectors=[selector])
        yield ClusterRole(
            kind="ClusterRole",
            api_version=API_VERSION,
            metadata=metadata,
            rules=_rules(name, text, gates),
            aggregation_rule=aggregation,
        )


def _cluster_role_bindings(gates: Container[str]) -> Iterator[ClusterRoleBinding]:
    of_controllers = (
        (name, f"ServiceAccount {name.removeprefix(controllers.PREFIX)}") for name, _ in _controllers(gates)
    )
    for name, subjects in (*table.CLUSTER_ROLE_BINDINGS.items(), *of_controllers):
        yield ClusterRoleBinding(
            kind="ClusterRoleBinding",
            api_version=API_VERSION,
            metadata=_metadata(name),
            subjects=_subjects(subjects),
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=name),
        )


def _rules(name: str, text: str, gates: Container[str]) -> list[PolicyRule]:
    rules = parse(text)
    for gate, role, more in table.GATED:
        if role == name and gate in gates:
            rules += parse(more)
    return rules


def _metadata(name: str, namespace: str = "") -> ObjectMeta:
    label, value = BOOTSTRAPPING
    return ObjectMeta(
        name=name, namespace=namespace, labels={label: value}, annotations={AUTO_UPDATE: "true"}
    )


def _subjects(text: str) -> list[Subject]:
    subjects = []
    for item in text.split(", ") if text else []:
        kind, _, name = item.partition(" ")
        if kind == "ServiceAccount":
            subjects.append(Subject(kind=kind, name=name, namespace="kube-system"))
        else:
            subjects.append(Subject(kind=kind, name=name, api_group=GROUP))
    return subjects


def parse(text: str) -> list[PolicyRule]:
    """Parse the rules of a role from the text of the table."""
    lines: list[str] = []
    for line in text.splitlines():
        if ": " in line:
            lines.append(line)
        elif line.strip():
            lines[-1] += f" {line.strip()}"
    return [_parse_rule(line.strip()) for line in lines]


def _parse_rule(line: str) -> PolicyRule:
    head, _, tail = line.partition(": ")
    verbs = sorted(verb for word in head.split(",") for verb in _VERBS.get(word, (word,)))
    things: list[str] = []
    groups, names = ["core"], []
    for word in tail.split():
        if word.startswith("@"):
            groups = word[1:].split(",")
        elif word.startswith("="):
            names = word[1:].split(",")
        else:
            things.append(word)
    invariant(bool(things), f"a rule about nothing: {line}")
    if groups == ["paths"]:
        return PolicyRule(verbs=verbs, non_resource_urls=things)
    groups = ["" if group == "core" else group for group in groups]
    return PolicyRule(verbs=verbs, api_groups=groups, resources=things, resource_names=names)
