"""What a node may do, by what its pods refer to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import ResourceSlice
from nodeward.api.storage_v1 import VolumeAttachment
from nodeward.apiserver.auth.authorizers import Authorizers
from nodeward.apiserver.auth.bootstrap_policy import node_rules
from nodeward.apiserver.auth.node_authorizer import NodeAuthorizer
from nodeward.apiserver.auth.node_graph import NodeGraph
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.rules import rule_allows
from nodeward.apiserver.auth.user import (
    NO_OPINION,
    Attributes,
    Authorization,
    AuthorizerDecision,
    FieldTerm,
    User,
)

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
OTHER = User("system:node:n2", groups=("system:nodes", "system:authenticated"))


def pod(name: str = "p", node: str = "n1", annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    status = spec.pop("status", {})
    metadata = {"name": name, "namespace": "ns", "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node, **spec}, "status": status}, Pod)


def volume(name: str, source: dict[str, Any], claim: str = "claim") -> PersistentVolume:
    spec = {**source, "claimRef": {"namespace": "ns", "name": claim}} if claim else source
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, PersistentVolume)


def ask(
    graph: NodeGraph,
    verb: str,
    resource: str,
    name: str = "",
    *,
    who: User = NODE,
    namespace: str = "ns",
    fields: tuple[FieldTerm, ...] = (),
    gates: tuple[str, ...] = (),
) -> Authorization:
    """`resource` may be `group/resource/subresource`, shortened from the left."""
    group, _, rest = resource.rpartition("|")
    plain, _, subresource = rest.partition("/")
    wanted = Attributes(
        user=who,
        verb=verb,
        group=group,
        resource=plain,
        subresource=subresource,
        name=name,
        namespace=namespace,
        field_selector=fields,
    )
    return NodeAuthorizer(graph, gates).authorize(wanted)


def full_pod() -> Pod:
    env = [
        {"name": "a", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}},
        {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "env-map", "key": "k"}}},
    ]
    env_from = [{"secretRef": {"name": "from-secret"}}, {"configMapRef": {"name": "from-map"}}]
    projected = [{"secret": {"name": "projected-secret"}}, {"configMap": {"name": "projected-map"}}]
    return pod(
        serviceAccountName="bot",
        imagePullSecrets=[{"name": "pull"}],
        initContainers=[{"name": "i", "env": env}],
        containers=[{"name": "c", "envFrom": env_from}],
        ephemeralContainers=[{"name": "e", "envFrom": [{"secretRef": {"name": "debug-secret"}}]}],
        volumes=[
            {"name": "v1", "secret": {"secretName": "volume-secret"}},
            {"name": "v2", "configMap": {"name": "volume-map"}},
            {"name": "v3", "projected": {"sources": projected}},
            {"name": "v4", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "v5", "ephemeral": {}},
            {"name": "v6", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi-secret"}}},
            {"name": "v7", "azureFile": {"secretName": "azure-secret", "shareName": "s"}},
            {"name": "v8", "cephfs": {"monitors": [], "secretRef": {"name": "ceph-secret"}}},
        ],
        resourceClaims=[
            {"name": "r1", "resourceClaimName": "named"},
            {"name": "r2", "resourceClaimTemplateName": "t"},
            {"name": "r3", "resourceClaimTemplateName": "t"},
        ],
        status={
            "resourceClaimStatuses": [{"name": "r2", "resourceClaimName": "made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": []},
        },
    )


NEEDED = [
    ("secrets", name)
    for name in (
        *("pull", "env-secret", "from-secret", "debug-secret", "volume-secret", "projected-secret"),
        *("csi-secret", "azure-secret", "ceph-secret"),
    )
]
NEEDED += [("configmaps", name) for name in ("env-map", "from-map", "volume-map", "projected-map")]
NEEDED += [("persistentvolumeclaims", "claim"), ("persistentvolumeclaims", "p-v5"), ("pods", "p")]
NEEDED += [("serviceaccounts", "bot")]
NEEDED += [("resource.k8s.io|resourceclaims", name) for name in ("named", "made", "extended")]


@pytest.mark.parametrize(("resource", "name"), NEEDED)
def test_a_node_reads_what_its_pods_need_for_as_long_as_they_are_there(resource: str, name: str) -> None:
    graph = NodeGraph()
    denied = Authorization(
        AuthorizerDecision.NO_OPINION, "no relationship found between node 'n1' and this object"
    )
    assert ask(graph, "get", resource, name) == denied
    graph.upsert_pod(full_pod())
    assert ask(graph, "get", resource, name).is_allowed
    assert not ask(graph, "get", resource, name, who=OTHER).is_allowed
    assert not ask(graph, "get", resource, name, namespace="elsewhere").is_allowed
    graph.remove_pod("ns", "p")
    assert ask(graph, "get", resource, name) == denied


def test_two_pods_share_a_secret_until_the_last_is_gone() -> None:
    graph = NodeGraph()
    for name in ("a", "b"):
        graph.upsert_pod(pod(name, imagePullSecrets=[{"name": "s"}]))
    graph.remove_pod("ns", "a")
    assert ask(graph, "get", "secrets", "s").is_allowed
    graph.remove_pod("ns", "b")
    assert not ask(graph, "get", "secrets", "s").is_allowed


def test_a_mirror_pod_gives_its_node_nothing_but_itself() -> None:
    graph = NodeGraph()
    graph.upsert_pod(pod(annotations={"kubernetes.io/config.mirror": "x"}, imagePullSecrets=[{"name": "s"}]))
    assert ask(graph, "get", "pods", "p").is_allowed
    assert not ask(graph, "get", "secrets", "s").is_allowed


def test_a_pod_without_a_node_gives_nobody_anything() -> None:
    graph = NodeGraph()
    graph.upsert_pod(pod(node="", imagePullSecrets=[{"name": "s"}]))
    assert not ask(graph, "get", "secrets", "s").is_allowed


@pytest.mark.parametrize(
    ("source", "secret"),
    [
        (
            {
                "csi": {
                    "driver": "d",
                    "volumeHandle": "h",
                    "nodeStageSecretRef": {"name": "s", "namespace": "far"},
                }
            },
            "far",
        ),
        (
            {
                "csi": {
                    "driver": "d",
                    "volumeHandle": "h",
                    "nodePublishSecretRef": {"name": "s", "namespace": "far"},
                }
            },
            "far",
        ),
        (
            {
                "csi": {
                    "driver": "d",
                    "volumeHandle": "h",
                    "nodeExpandSecretRef": {"name": "s", "namespace": "far"},
                }
            },
            "far",
        ),
        ({"rbd": {"monitors": [], "image": "i", "secretRef": {"name": "s"}}}, "ns"),
        ({"rbd": {"monitors": [], "image": "i", "secretRef": {"name": "s", "namespace": "far"}}}, "far"),
        ({"azureFile": {"secretName": "s", "shareName": "x"}}, "ns"),
        ({"azureFile": {"secretName": "s", "shareName": "x", "secretNamespace": "far"}}, "far"),
        ({"cinder": {"volumeID": "v", "secretRef": {"name": "s", "namespace": "far"}}}, "far"),
    ],
)
def test_a_node_reads_the_volume_behind_a_claim_and_the_secrets_behind_the_volume(
    source: dict[str, Any], secret: str
) -> None:
    graph = NodeGraph()
    graph.upsert_volume(volume("v", source))
    graph.upsert_pod(pod(volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "claim"}}]))
    assert ask(graph, "get", "persistentvolumes", "v", namespace="").is_allowed
    assert ask(graph, "get", "secrets", "s", namespace=secret).is_allowed
    assert not ask(graph, "get", "secrets", "s", namespace=secret, who=OTHER).is_allowed
    graph.upsert_volume(volume("v", source, claim="other"))
    assert not ask(graph, "get", "persistentvolumes", "v", namespace="").is_allowed
    graph.upsert_volume(volume("v", source))
    graph.remove_volume("v")
    assert not ask(graph, "get", "secrets", "s", namespace=secret).is_allowed
    assert not graph._secret_volumes


def test_secrets_of_controllers_and_of_unbound_volumes_stay_secret() -> None:
    graph = NodeGraph()
    source = {
        "csi": {
            "driver": "d",
            "volumeHandle": "h",
            "controllerPublishSecretRef": {"name": "s", "namespace": "ns"},
        }
    }
    graph.upsert_volume(volume("v", source))
    graph.upsert_volume(volume("u", {"azureFile": {"secretName": "t", "shareName": "x"}}, claim=""))
    graph.upsert_pod(pod(volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "claim"}}]))
    assert not ask(graph, "get", "secrets", "s").is_allowed
    assert not ask(graph, "get", "secrets", "t").is_allowed


def test_attachments_and_slices_belong_to_the_node_they_name() -> None:
    graph = NodeGraph()
    attachment = {"metadata": {"name": "a"}, "spec": {"attacher": "x", "nodeName": "n1"}}
    graph.upsert_attachment(msgspec.convert(attachment, VolumeAttachment))
    graph.upsert_slice(
        msgspec.convert({"metadata": {"name": "s"}, "spec": {"nodeName": "n1"}}, ResourceSlice)
    )
    for resource, name in (
        ("storage.k8s.io|volumeattachments", "a"),
        ("resource.k8s.io|resourceslices", "s"),
    ):
        assert ask(graph, "get", resource, name, namespace="").is_allowed
        assert not ask(graph, "get", resource, name, namespace="", who=OTHER).is_allowed
    assert ask(graph, "delete", "resource.k8s.io|resourceslices", "s", namespace="").is_allowed
    graph.remove_attachment("a")
    graph.remove_slice("s")
    assert not ask(graph, "get", "storage.k8s.io|volumeattachments", "a", namespace="").is_allowed
    assert not ask(graph, "get", "resource.k8s.io|resourceslices", "s", namespace="").is_allowed


OWN = (("spec.nodeName", "n1", True),)
FOREIGN = (("spec.nodeName", "n2", True), ("spec.nodeName", "n1", False))


@pytest.mark.parametrize(
    ("verb", "resource", "name", "fields"),
    [
        ("create", "nodes", "", ()),
        ("patch", "nodes", "n2", ()),  # whose Node it is, admission checks
        ("patch", "nodes/status", "n1", ()),
        ("get", "nodes", "n1", ()),
        ("watch", "nodes", "n1", ()),
        ("list", "pods", "", OWN),
        ("watch", "pods", "", OWN),
        ("create", "pods", "", ()),
        ("delete", "pods", "p", ()),
        ("patch", "pods/status", "p", ()),
        ("create", "pods/eviction", "p", ()),
        ("create", "resource.k8s.io|resourceslices", "", ()),
        ("list", "resource.k8s.io|resourceslices", "", OWN),
        ("deletecollection", "resource.k8s.io|resourceslices", "", OWN),
        ("create", "storage.k8s.io|csinodes", "", ()),
        ("update", "storage.k8s.io|csinodes", "n1", ()),
        ("list", "services", "", ()),
        ("create", "events", "", ()),
        ("create", "authentication.k8s.io|tokenreviews", "", ()),
        ("list", "node.k8s.io|runtimeclasses", "", ()),
    ],
)
def test_a_node_may_always(verb: str, resource: str, name: str, fields: tuple[FieldTerm, ...]) -> None:
    assert ask(NodeGraph(), verb, resource, name, fields=fields).is_allowed


UNRELATED = "no relationship found between node 'n1' and this object"
SLICE_VERBS = (
    "only the following verbs are allowed for a ResourceSlice: "
    "get, watch, list, create, update, patch, delete, deletecollection"
)


@pytest.mark.parametrize(
    ("verb", "resource", "name", "reason"),
    [
        ("get", "nodes", "n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("list", "nodes", "", "node 'n1' cannot read all nodes, only its own Node object"),
        ("delete", "nodes", "n1", ""),
        ("get", "nodes/proxy", "n1", ""),
        ("list", "pods", "", "can only list/watch pods with spec.nodeName field selector"),
        ("list", "pods", "p", UNRELATED),
        ("get", "pods/log", "p", ""),
        ("update", "pods", "p", ""),
        ("list", "secrets", "", "No Object name found"),
        ("update", "secrets", "s", "can only read resources of this type"),
        ("get", "configmaps/x", "s", "cannot read subresource"),
        ("list", "persistentvolumeclaims", "", "can only get individual resources of this type"),
        ("get", "persistentvolumes/status", "v", "cannot get subresource"),
        ("get", "persistentvolumeclaims/status", "c", "can only get/update/patch this type"),
        ("patch", "persistentvolumeclaims/status", "c", UNRELATED),
        ("get", "serviceaccounts", "sa", UNRELATED),
        ("delete", "serviceaccounts", "sa", "can only create tokens for individual service accounts"),
        ("create", "serviceaccounts", "sa", "can only create token subresource of serviceaccount"),
        ("create", "serviceaccounts/token", "sa", UNRELATED),
        ("list", "storage.k8s.io|csinodes", "", "can only get, create, update, patch, or delete a CSINode"),
        (
            "get",
            "storage.k8s.io|csinodes",
            "n2",
            "can only access CSINode with the same name as the requesting node",
        ),
        ("get", "storage.k8s.io|csinodes/x", "n1", "cannot authorize CSINode subresources"),
        (
            "get",
            "storage.k8s.io|csinodes/status",
            "n1",
            "CSINode status access requires CSIVolumeHealth feature",
        ),
        ("get", "resource.k8s.io|resourceslices/x", "s", "cannot authorize ResourceSlice subresources"),
        ("proxy", "resource.k8s.io|resourceslices", "s", SLICE_VERBS),
        (
            "list",
            "resource.k8s.io|resourceslices",
            "",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("create", "apps|deployments", "", ""),
    ],
)
def test_a_node_is_told_why_not(verb: str, resource: str, name: str, reason: str) -> None:
    assert ask(NodeGraph(), verb, resource, name, fields=FOREIGN) == Authorization(
        AuthorizerDecision.NO_OPINION, reason
    )


def test_a_node_writes_tokens_and_claim_status_for_its_pods() -> None:
    graph = NodeGraph()
    graph.upsert_pod(full_pod())
    assert ask(graph, "create", "serviceaccounts/token", "bot").is_allowed
    assert ask(graph, "patch", "persistentvolumeclaims/status", "claim").is_allowed
    assert (
        ask(graph, "get", "secrets", "pull", namespace="").reason
        == "can only read namespaced object of this type"
    )


def test_a_node_keeps_its_own_lease_in_its_own_place() -> None:
    leases = "coordination.k8s.io|leases"

    def answer(verb: str, name: str, namespace: str) -> Authorization:
        return ask(NodeGraph(), verb, leases, name, namespace=namespace)

    assert answer("update", "n1", "kube-node-lease").is_allowed
    assert answer("create", "", "kube-node-lease").is_allowed
    assert answer("get", "n2", "kube-node-lease").reason == (
        "can only access node lease with the same name as the requesting node"
    )
    assert answer("get", "n1", "ns").reason == (
        'can only access leases in the "kube-node-lease" system namespace'
    )
    assert answer("list", "", "kube-node-lease").reason == (
        "can only get, create, update, patch, or delete a node lease"
    )


def test_csi_node_status_opens_with_its_gate() -> None:
    def answer(verb: str) -> Authorization:
        return ask(NodeGraph(), verb, "storage.k8s.io|csinodes/status", "n1", gates=("CSIVolumeHealth",))

    assert answer("patch").is_allowed
    assert answer("delete").reason == "can only get, update, or patch CSINode status"


def test_a_node_gets_no_paths_here_and_no_more_than_its_role_says() -> None:
    path = Attributes(user=NODE, verb="get", path="/metrics", is_resource_request=False)
    assert NodeAuthorizer(NodeGraph()).authorize(path) == NO_OPINION
    allowed = NodeAuthorizer(NodeGraph())
    rules = node_rules()
    for verb in ("get", "list", "create", "delete"):
        for group, resource in (
            ("", "services"),
            ("", "endpoints"),
            ("storage.k8s.io", "csidrivers"),
            ("x", "y"),
        ):
            wanted = Attributes(user=NODE, verb=verb, group=group, resource=resource, name="n")
            expected = any(rule_allows(rule, wanted) for rule in rules)
            assert allowed.authorize(wanted).is_allowed == expected


def test_only_who_is_a_node_by_name_and_group_is_a_node() -> None:
    graph = NodeGraph()
    for user in (User("system:node:n1"), User("n1", groups=("system:nodes",)), User("jane")):
        assert ask(graph, "create", "nodes", who=user) == NO_OPINION
    nameless = User("system:node:", groups=("system:nodes",))
    assert ask(graph, "create", "nodes", who=nameless).reason == 'unknown node for user "system:node:"'


def test_the_first_opinion_counts_and_a_refusal_shows_every_reason() -> None:
    graph = NodeGraph()
    everybody = Authorizers(RbacAuthorizer(), NodeAuthorizer(graph))
    wanted = Attributes(user=NODE, verb="get", resource="nodes", name="n2")
    assert everybody.authorize(wanted) == Authorization(
        AuthorizerDecision.NO_OPINION, "node: node 'n1' cannot read 'n2', only its own Node object"
    )
    with pytest.raises(ApiError) as refused:
        everybody.require(wanted)
    assert str(refused.value) == (
        'nodes "n2" is forbidden: User "system:node:n1" cannot get resource "nodes" in API group "" '
        "at the cluster scope: node: node 'n1' cannot read 'n2', only its own Node object"
    )
    everybody.require(Attributes(user=NODE, verb="get", resource="nodes", name="n1"))
    everybody.require(Attributes(user=User("root", groups=("system:masters",)), verb="x", resource="y"))
    assert everybody.authorize(Attributes(user=User("jane"), verb="x", resource="y")) == NO_OPINION
    rules, faults, is_incomplete = everybody.rules_for(NODE, "ns")
    assert (rules, faults, is_incomplete) == (
        [],
        ["node authorizer does not support user rule resolution"],
        True,
    )
    assert everybody.rules_for(User("jane"), "ns") == ([], [], False)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["n1", "n2", ""]),
        st.lists(st.sampled_from(["s", "t"]), max_size=2),
    ),
    max_size=12,
)


@given(STEPS)
def test_after_any_history_the_graph_knows_what_the_pods_that_are_left_say(
    steps: list[tuple[str, str, str, list[str]]],
) -> None:
    graph = NodeGraph()
    there: dict[str, tuple[str, list[str]]] = {}
    for step, name, node, secrets in steps:
        if step == "put":
            graph.upsert_pod(pod(name, node, imagePullSecrets=[{"name": secret} for secret in secrets]))
            there[name] = (node, secrets)
        else:
            graph.remove_pod("ns", name)
            there.pop(name, None)
    for node in ("n1", "n2"):
        for secret in ("s", "t"):
            expected = any(home == node and secret in secrets for home, secrets in there.values())
            assert graph.is_related(node, "secrets", "ns", secret) == expected
    if not any(home for home, _ in there.values()):
        assert not graph._nodes_of
