"""Default roles and bindings, and how they meet what is already there."""

from __future__ import annotations

import copy
import hashlib
import json

import msgspec

from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta
from nodeward.api.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleBinding,
    RoleRef,
    Subject,
)
from nodeward.apiserver.auth.bootstrap_policy import bootstrap_objects, node_rules, parse
from nodeward.apiserver.auth.bootstrap_roles import GATED
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.reconcile import RbacChange, RbacStep, reconcile
from nodeward.apiserver.auth.rules import aggregate
from nodeward.apiserver.auth.user import Attributes, User

#: SHA-256 over the default objects of Kubernetes 1.37 (its own published fixtures), by kind, namespace and name.
UPSTREAM = "8319d0ab1bffd02ccc3aa0f9a2ade718e3b0bed127918b6c38e989eb71c0b717"


def named(kind: type[KubeObject], name: str) -> KubeObject:
    return next(o for o in bootstrap_objects() if type(o) is kind and o.metadata.name == name)


def cluster() -> RbacAuthorizer:
    rbac = RbacAuthorizer()
    objects = bootstrap_objects()
    roles = [item for item in objects if isinstance(item, ClusterRole)]
    for item in (*objects, *aggregate(roles)):
        rbac.upsert(type(item).__name__, item)
    return rbac


#: A controller that elsewhere comes with a role of its own.
OURS = "system:controller:node-readiness-controller"


def test_the_table_says_exactly_what_kubernetes_creates() -> None:
    objects = []
    for item in bootstrap_objects():
        if item.metadata.name == OURS:
            continue
        plain = json.loads(msgspec.json.encode(item))
        plain.setdefault("subjects" if "Binding" in plain["kind"] else "rules", [])
        objects.append(plain)
    objects.sort(key=lambda o: (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]))
    text = json.dumps(objects, sort_keys=True)
    assert len(objects) == 141
    assert hashlib.sha256(text.encode()).hexdigest() == UPSTREAM


def test_a_line_of_the_table_reads_as_a_rule() -> None:
    assert parse("read,delete: pods nodes\n    services/status @core,apps =a,b") == [
        PolicyRule(
            verbs=["delete", "get", "list", "watch"],
            api_groups=["", "apps"],
            resources=["pods", "nodes", "services/status"],
            resource_names=["a", "b"],
        )
    ]
    assert parse("get: /healthz /api/* @paths") == [
        PolicyRule(verbs=["get"], non_resource_urls=["/healthz", "/api/*"])
    ]


def test_gates_add_rules_and_controllers() -> None:
    names = {(type(o).__name__, o.metadata.name) for o in bootstrap_objects(("GenericWorkload",))}
    assert ("ClusterRole", "system:controller:podgroup-protection-controller") in names
    assert ("ClusterRoleBinding", "system:controller:podgroup-protection-controller") in names
    assert len(node_rules(("CSIVolumeHealth",))) == len(node_rules()) + 1
    roles = {o.metadata.name for o in bootstrap_objects() if isinstance(o, ClusterRole)}
    assert {role for _, role, _ in GATED} <= roles


def test_everybody_may_look_at_the_version_and_only_that_when_not_logged_in() -> None:
    rbac = cluster()
    anonymous = User("system:anonymous", groups=("system:unauthenticated",))
    jane = User("jane", groups=("system:authenticated",))

    def may_get(who: User, path: str) -> bool:
        return rbac.authorize(
            Attributes(user=who, verb="get", path=path, is_resource_request=False)
        ).is_allowed

    assert all(may_get(anonymous, path) for path in ("/healthz", "/livez", "/readyz", "/version"))
    assert not may_get(anonymous, "/api")
    assert may_get(jane, "/api")
    assert may_get(jane, "/apis/apps/v1")
    assert not may_get(jane, "/metrics")


def test_admin_edit_and_view_add_up() -> None:
    rbac = cluster()
    for role in ("admin", "edit", "view"):
        binding = RoleBinding(
            metadata=ObjectMeta(name=role, namespace="ns"),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role),
            subjects=[Subject(kind="User", name=role)],
        )
        rbac.upsert("RoleBinding", binding)

    def may(who: str, verb: str, resource: str, group: str = "") -> bool:
        wanted = Attributes(user=User(who), verb=verb, group=group, resource=resource, namespace="ns")
        return rbac.authorize(wanted).is_allowed

    assert [may(who, "list", "pods") for who in ("admin", "edit", "view")] == [True, True, True]
    assert [may(who, "create", "pods") for who in ("admin", "edit", "view")] == [True, True, False]
    assert [may(who, "get", "secrets") for who in ("admin", "edit", "view")] == [True, True, False]
    rbac_group = "rbac.authorization.k8s.io"
    assert [may(who, "create", "roles", rbac_group) for who in ("admin", "edit", "view")] == [
        True,
        False,
        False,
    ]


def test_on_an_empty_cluster_everything_is_created_and_afterwards_nothing_changes() -> None:
    wanted = bootstrap_objects()
    assert reconcile([], wanted) == [RbacChange(RbacStep.CREATE, item) for item in wanted]
    assert reconcile(wanted, bootstrap_objects()) == []


def test_missing_permissions_are_added_and_extra_ones_kept() -> None:
    wanted = named(ClusterRole, "system:basic-user")
    assert isinstance(wanted, ClusterRole)
    there = copy.deepcopy(wanted)
    extra = PolicyRule(verbs=["get"], api_groups=[""], resources=["nodes"])
    there.rules = [wanted.rules[0], extra]
    there.metadata.labels = {"mine": "yes"}
    there.metadata.uid = "7"
    before = copy.deepcopy(there)
    (change,) = reconcile([there], [wanted])
    assert there == before
    assert change.step is RbacStep.UPDATE
    assert isinstance(change.obj, ClusterRole)
    assert change.obj.rules == [
        wanted.rules[0],
        extra,
        PolicyRule(verbs=["create"], api_groups=["authentication.k8s.io"], resources=["selfsubjectreviews"]),
    ]
    assert change.obj.metadata.labels == {"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"}
    assert change.obj.metadata.uid == "7"


def test_an_object_with_autoupdate_off_is_left_alone() -> None:
    wanted = named(ClusterRole, "cluster-admin")
    there = copy.deepcopy(wanted)
    assert isinstance(there, ClusterRole)
    there.rules = []
    there.metadata.annotations["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    assert reconcile([there], [wanted]) == []


def test_missing_subjects_are_added_and_a_binding_of_another_role_is_made_again() -> None:
    wanted = named(ClusterRoleBinding, "system:discovery")
    assert isinstance(wanted, ClusterRoleBinding)
    there = copy.deepcopy(wanted)
    there.subjects = [Subject(kind="User", name="joe")]
    (change,) = reconcile([there], [wanted])
    assert isinstance(change.obj, ClusterRoleBinding)
    assert (change.step, change.obj.subjects) == (RbacStep.UPDATE, [*there.subjects, *wanted.subjects])
    there.role_ref = RoleRef(kind="ClusterRole", name="other")
    assert reconcile([there], [wanted]) == [RbacChange(RbacStep.RECREATE, wanted)]


def test_a_missing_selector_is_added_and_an_unwanted_aggregation_removed() -> None:
    admin = named(ClusterRole, "admin")
    assert isinstance(admin, ClusterRole)
    own = LabelSelector(match_labels={"mine": "yes"})
    there = copy.deepcopy(admin)
    there.aggregation_rule = AggregationRule(cluster_role_selectors=[own])
    (change,) = reconcile([there], [admin])
    assert isinstance(change.obj, ClusterRole)
    assert change.obj.aggregation_rule is not None
    assert admin.aggregation_rule is not None
    assert change.obj.aggregation_rule.cluster_role_selectors == [
        own,
        *admin.aggregation_rule.cluster_role_selectors,
    ]
    viewer = named(ClusterRole, "system:heapster")
    gathering = copy.deepcopy(viewer)
    assert isinstance(gathering, ClusterRole)
    gathering.aggregation_rule = AggregationRule(cluster_role_selectors=[own])
    (change,) = reconcile([gathering], [viewer])
    assert isinstance(change.obj, ClusterRole)
    assert change.obj.aggregation_rule is None
