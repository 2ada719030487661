"""A kubelet writes only what belongs to its own node."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.authentication_v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.node import Node, NodeReadinessGate, NodeSpec
from nodeward.api.core_v1.pod import Binding, Pod
from nodeward.api.core_v1.pod_status import PodResourceClaimStatus
from nodeward.api.core_v1.references import Taint
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import ConfigMapVolumeSource, CSIVolumeSource, HostPathVolumeSource
from nodeward.api.meta import OwnerReference
from nodeward.api.policy_v1 import Eviction
from nodeward.api.resource_v1 import ResourceSlice, ResourceSliceSpec
from nodeward.api.storage_v1 import CSIDriver, CSIDriverSpec, CSINode
from nodeward.api.storage_v1 import TokenRequest as DriverToken
from nodeward.apiserver.admission.node_restriction import NodeRestriction
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.admission.service_account import ServiceAccountPlugin
from nodeward.apiserver.auth.user import User
from nodeward.rules.pod_references import MIRROR
from nodeward.rules.readiness import RECORD_ANNOTATION
from tests.apiserver.admission.world import (
    ADMIN,
    account,
    admitted,
    amounts,
    copy,
    create,
    delete,
    forbidden,
    kubelet,
    meta,
    pod,
    refused,
    send,
    update,
    world,
)

ME = kubelet("n1")


def node(name: str = "n1", labels: dict[str, str] | None = None, **spec: Any) -> Node:
    return Node(metadata=meta(name, uid=f"uid-{name}", labels=labels or {}), spec=NodeSpec(**spec))


def plugin(*objects: Any) -> NodeRestriction:
    return NodeRestriction(world(node(), *objects))


def mirror(**spec: Any) -> Pod:
    spec.setdefault("node_name", "n1")
    made = pod("static", **spec)
    made.metadata.annotations[MIRROR] = "hash"
    made.metadata.owner_references = [
        OwnerReference(api_version="v1", kind="Node", name="n1", uid="uid-n1", controller=True)
    ]
    return made


def test_nobody_but_kubelets_is_restricted() -> None:
    for user in (ADMIN, User("system:node:n2"), User("someone", groups=("system:nodes",))):
        admitted(plugin(), update(node(taints=[Taint(key="k", effect="NoSchedule")]), node(), user=user))
    nameless = User("system:node:", groups=("system:nodes",))
    assert (
        forbidden(plugin(), create(node(), nameless)) == 'could not determine node from user "system:node:"'
    )


def test_other_kinds_are_left_to_authorization() -> None:
    admitted(plugin(), create(ConfigMap(metadata=meta("c", "default")), ME))


# -- nodes


def test_a_kubelet_writes_its_own_node_only() -> None:
    why = 'node "n1" is not allowed to modify node "n2"'
    assert forbidden(plugin(), create(node("n2"), ME)) == why
    assert forbidden(plugin(), delete(node("n2"), ME)) == why
    other = node("n2")
    other.status.declared_features = ["Invented"]
    assert forbidden(plugin(), update(other, node("n2"), "status", ME)) == why
    admitted(plugin(), delete(node(), ME))


def test_a_kubelet_declares_features_and_sets_its_readiness_gates() -> None:
    made = node(readiness_gates=[NodeReadinessGate(condition_type="example.com/Ready", timeout_seconds=10)])
    admitted(plugin(), update(made, node(), user=ME))
    made.status.declared_features = ["SomeFeature"]
    admitted(plugin(), update(made, node(), "status", ME))


@pytest.mark.parametrize(
    "label",
    [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "example.com/anything",
        "plain",
        "kubelet.kubernetes.io/x",
        "mine.node.kubernetes.io/x",
        "readiness-gate.network.kubernetes.io/CNIReady",
        "readiness-gate.example.com/AgentReady",
    ],
)
def test_labels_a_kubelet_may_set(label: str) -> None:
    admitted(plugin(), create(node(labels={label: "true"}), ME))
    admitted(plugin(), update(node(labels={label: "true"}), node(), user=ME))
    admitted(plugin(), update(node(), node(labels={label: "true"}), "status", ME))


@pytest.mark.parametrize(
    "label",
    [
        "node-restriction.kubernetes.io/secure",
        "mine.node-restriction.kubernetes.io/secure",
        "readiness-gate.node-restriction.kubernetes.io/secure",
        "node-role.kubernetes.io/control-plane",
        "kubernetes.io/made-up",
        "x.k8s.io/y",
    ],
)
def test_labels_a_kubelet_may_not_touch(label: str) -> None:
    labelled = node(labels={label: "true", "fine": "1"})
    assert forbidden(plugin(), create(labelled, ME)) == (
        f'node "n1" is not allowed to set the following labels: {label}'
    )
    why = f"is not allowed to modify labels: {label}"
    assert forbidden(plugin(), update(labelled, node(), user=ME)) == why
    assert forbidden(plugin(), update(node(), labelled, user=ME)) == why
    admitted(plugin(), update(labelled, copy(labelled), user=ME))


def test_a_kubelet_changes_neither_taints_nor_owners() -> None:
    admitted(plugin(), create(node(taints=[Taint(key="k", effect="NoSchedule")]), ME))
    tainted = node(taints=[Taint(key="k", effect="NoSchedule")])
    assert (
        forbidden(plugin(), update(node(), tainted, user=ME)) == 'node "n1" is not allowed to modify taints'
    )
    owned = node()
    owned.metadata.owner_references = [OwnerReference(name="x")]
    assert forbidden(plugin(), update(owned, node(), user=ME)) == (
        'node "n1" is not allowed to modify ownerReferences'
    )


def test_a_kubelet_does_not_write_down_which_taints_the_controller_put() -> None:
    recorded = node()
    recorded.metadata.annotations[RECORD_ANNOTATION] = "{}"
    assert forbidden(plugin(), create(recorded, ME)) == (
        f'node "n1" is not allowed to set the annotation {RECORD_ANNOTATION}'
    )
    why = f'node "n1" is not allowed to modify the annotation {RECORD_ANNOTATION}'
    assert forbidden(plugin(), update(recorded, node(), user=ME)) == why
    assert forbidden(plugin(), update(node(), recorded, user=ME)) == why
    admitted(plugin(), update(recorded, copy(recorded), user=ME))


# -- pods


def test_a_kubelet_creates_only_copies_of_its_static_pods() -> None:
    host = Volume(name="h", host_path=HostPathVolumeSource(path="/"))
    admitted(plugin(), create(mirror(volumes=[host]), ME))
    assert forbidden(plugin(), create(pod(node_name="n1"), ME)) == (
        'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods'
    )
    assert forbidden(plugin(), create(mirror(node_name="n2"), ME)) == (
        'node "n1" can only create pods with spec.nodeName set to itself'
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "n2"}, 'node "n1" can only create pods with an owner reference set to itself'),
        (
            {"controller": None},
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        ({"block_owner_deletion": True}, 'node "n1" must not set blockOwnerDeletion on an owner reference'),
        ({"uid": "other"}, "node n1 UID mismatch: expected other got uid-n1"),
    ],
)
def test_a_copy_of_a_static_pod_is_owned_by_its_node(change: dict[str, Any], why: str) -> None:
    made = mirror()
    for name, value in change.items():
        setattr(made.metadata.owner_references[0], name, value)
    assert forbidden(plugin(), create(made, ME)) == why


def test_a_copy_of_a_static_pod_refers_to_nothing_in_the_api() -> None:
    for spec, what in (
        ({"service_account_name": "default"}, "serviceaccounts"),
        ({"volumes": [Volume(name="v", config_map=ConfigMapVolumeSource(name="c"))]}, "configmaps"),
        ({"volumes": [Volume(name="v", csi=CSIVolumeSource(driver="d"))]}, "csidrivers (via CSI volumes)"),
    ):
        assert forbidden(plugin(), create(mirror(**spec), ME)) == (
            f'node "n1" can not create pods that reference {what}'
        )


def test_a_kubelet_deletes_and_evicts_its_own_pods() -> None:
    mine, other = pod("mine", node_name="n1"), pod("other", node_name="n2")
    restricted = plugin(mine, other)
    admitted(restricted, delete(mine, ME))
    admitted(restricted, send(mine, "eviction", Eviction(), ME))
    assert forbidden(restricted, delete(other, ME)) == (
        'node "n1" can only delete pods with spec.nodeName set to itself'
    )
    assert forbidden(restricted, send(other, "eviction", Eviction(), ME)) == (
        "node n1 can only evict pods with spec.nodeName set to itself"
    )
    assert refused(restricted, send(pod("gone"), "eviction", Eviction(), ME)).code == 404


def test_a_kubelet_reports_status_and_changes_nothing_else() -> None:
    mine = pod("mine", node_name="n1")
    running = copy(mine)
    running.status.phase = "Running"
    admitted(plugin(), update(running, mine, "status", ME))
    other = pod("other", node_name="n2")
    assert forbidden(plugin(), update(other, other, "status", ME)) == (
        'node "n1" can only update pod status for pods with spec.nodeName set to itself'
    )
    labelled = copy(mine)
    labelled.metadata.labels = {"a": "b"}
    assert forbidden(plugin(), update(labelled, mine, "status", ME)) == (
        'node "n1" cannot update labels through pod status'
    )
    claiming = copy(mine)
    claiming.status.resource_claim_statuses = [PodResourceClaimStatus(name="c", resource_claim_name="x")]
    assert forbidden(plugin(), update(claiming, mine, "status", ME)) == (
        'node "n1" cannot update resource claim statues'
    )
    assert forbidden(plugin(), update(running, mine, user=ME)) == (
        'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'
    )
    assert forbidden(plugin(), send(mine, "binding", Binding(), ME)) == (
        "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"
    )


# -- the rest


def test_a_kubelet_holds_its_own_lease() -> None:
    admitted(plugin(), create(Lease(metadata=meta("n1", "kube-node-lease")), ME))
    assert forbidden(plugin(), create(Lease(metadata=meta("n1", "default")), ME)) == (
        'can only access leases in the "kube-node-lease" system namespace'
    )
    other = Lease(metadata=meta("n2", "kube-node-lease"))
    why = "can only access node lease with the same name as the requesting node"
    assert forbidden(plugin(), create(other, ME)) == why
    assert forbidden(plugin(), delete(other, ME)) == why


def test_a_kubelet_writes_its_own_csi_node_and_slices() -> None:
    admitted(plugin(), create(CSINode(metadata=meta("n1")), ME))
    assert forbidden(plugin(), create(CSINode(metadata=meta("n2")), ME)) == (
        "can only access CSINode with the same name as the requesting node"
    )
    mine = ResourceSlice(metadata=meta("s"), spec=ResourceSliceSpec(node_name="n1"))
    admitted(plugin(), create(mine, ME))
    for name in ("n2", None):
        other = ResourceSlice(metadata=meta("s"), spec=ResourceSliceSpec(node_name=name))
        end = "ResourceSlice with the same NodeName as the requesting node"
        assert forbidden(plugin(), create(other, ME)) == f"can only create {end}"
        assert forbidden(plugin(), delete(other, ME)) == f"can only delete {end}"


def test_a_kubelet_reports_the_size_of_a_claim_and_nothing_else() -> None:
    old = PersistentVolumeClaim(metadata=meta("v", "default"))
    grown = copy(old)
    grown.status.capacity = amounts(storage="2Gi")
    admitted(plugin(), update(grown, old, "status", ME))
    grown.metadata.labels = {"a": "b"}
    grown.status.phase = "Lost"
    assert forbidden(plugin(), update(grown, old, "status", ME)) == (
        'node "n1" is not allowed to update fields other than status.quantity and status.conditions: '
        "metadata.labels, status.phase"
    )
    assert forbidden(plugin(), update(old, old, user=ME)) == "may only update PVC status"


def token(pod_name: str = "p", uid: str = "uid-p", audiences: tuple[str, ...] = ()) -> Write:
    bound = BoundObjectReference(api_version="v1", kind="Pod", name=pod_name, uid=uid)
    spec = TokenRequestSpec(audiences=list(audiences), bound_object_ref=bound if pod_name else None)
    return send(account(), "token", TokenRequest(spec=spec), ME)


def test_a_kubelet_asks_for_tokens_of_its_pods_only() -> None:
    mine, other = pod(node_name="n1"), pod("other", node_name="n2")
    admitted(ServiceAccountPlugin(world(account())), create(mine))
    restricted = plugin(account(), mine, other)
    admitted(restricted, token())
    assert forbidden(restricted, token("")) == "node requested token not bound to a pod"
    assert forbidden(restricted, token(uid="")) == "node requested token with a pod binding without a uid"
    assert forbidden(restricted, token("other", "uid-other")) == (
        "node requested token bound to a pod scheduled on a different node"
    )
    assert forbidden(restricted, token(uid="old")) == (
        "the UID in the bound object reference (old) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    assert refused(restricted, token("gone")).code == 404


def test_a_kubelet_asks_for_audiences_that_the_pod_names() -> None:
    mine = pod(node_name="n1", volumes=[Volume(name="v", csi=CSIVolumeSource(driver="vault"))])
    driver = CSIDriver(
        metadata=meta("vault"), spec=CSIDriverSpec(token_requests=[DriverToken(audience="https://vault")])
    )
    restricted = plugin(account(), mine, driver)
    admitted(restricted, token(audiences=("https://vault",)))
    assert forbidden(restricted, token(audiences=("other",))) == (
        'system:node:n1 is not authorized to request tokens for audience "other"'
    )
    assert forbidden(restricted, token(audiences=("a", "b"))) == "node may only request 0 or 1 audiences"
    lenient = NodeRestriction(world(node(), mine, gates="ServiceAccountNodeAudienceRestriction=false"))
    admitted(lenient, token(audiences=("other",)))
