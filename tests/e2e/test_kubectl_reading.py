"""What people see who look at a cluster with the real kubectl."""

from __future__ import annotations

import json

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %(name)s, labels: {app: %(name)s, tier: back}}
spec:
  containers:
  - {name: main, image: "registry.example/app:1", ports: [{containerPort: 80}]}
"""


def pods(kubectl: Kubectl, *names: str) -> None:
    kubectl("create", "-f", "-", stdin="---".join(POD % {"name": name} for name in names))


def test_the_server_says_what_it_is(kubectl: Kubectl) -> None:
    said = kubectl("version")
    assert "Server Version: v1.37.0\n" in said
    assert f"Kubernetes control plane is running at {kubectl.cluster.url}\n" in kubectl("cluster-info")
    shown = kubectl("config", "view", "--minify")
    assert f"server: {kubectl.cluster.url}" in shown
    assert "client-key-data: DATA+OMITTED" in shown
    assert kubectl("config", "current-context") == "kubernetes-admin@nodeward\n"


def test_every_group_and_resource_is_discovered(kubectl: Kubectl) -> None:
    versions = kubectl("api-versions").split()
    assert versions == sorted(versions)
    assert {"v1", "apps/v1", "batch/v1", "resource.k8s.io/v1", "rbac.authorization.k8s.io/v1"} <= set(
        versions
    )
    table = kubectl("api-resources").splitlines()
    assert table[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    rows = [line.split() for line in table[1:]]
    assert ["pods", "po", "v1", "true", "Pod"] in rows
    assert ["resourceslices", "resource.k8s.io/v1", "false", "ResourceSlice"] in rows
    watchable = kubectl("api-resources", "--namespaced=false", "--verbs=list,watch", "-o", "name").split()
    assert "nodes" in watchable
    assert "storageclasses.storage.k8s.io" in watchable
    assert not {"pods", "tokenreviews.authentication.k8s.io"} & set(watchable)
    assert kubectl("api-resources", "--api-group=apps", "-o", "name").split() == [
        "controllerrevisions.apps",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
    ]


def test_who_one_is_and_what_one_may(kubectl: Kubectl) -> None:
    me = dict(kubectl.rows("auth", "whoami"))
    assert me["Username"] == "kubernetes-admin"
    assert me["Groups"] == "[system:masters system:authenticated]"
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"
    denied = kubectl.run("auth", "can-i", "get", "pods", "--as=bob")
    assert (denied.code, denied.out) == (1, "no\n")
    assert ["*.*", "[]", "[]", "[*]"] in kubectl.rows("auth", "can-i", "--list")
    forbidden = kubectl.refused("get", "pods", "--as=bob")
    assert forbidden == (
        'Error from server (Forbidden): pods is forbidden: User "bob" cannot list resource "pods" in API group ""'
        f' in the namespace "{kubectl.namespace}"\n'
    )


def test_rights_given_with_kubectl_hold_for_tokens_made_with_kubectl(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "bot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl(
        "create", "rolebinding", "bot-reads", "--role=reader", f"--serviceaccount={kubectl.namespace}:bot"
    )
    token = kubectl("create", "token", "bot").strip()
    ca = kubectl.cluster.directory / "pki" / "ca.crt"
    config = kubectl.file("bot.kubeconfig", "apiVersion: v1\nkind: Config\n")
    bot = (
        f"--kubeconfig={config}",
        f"--server={kubectl.cluster.url}",
        f"--certificate-authority={ca}",
        f"--token={token}",
    )
    assert kubectl.run("get", "pods", *bot).err == f"No resources found in {kubectl.namespace} namespace.\n"
    bot_name = f"system:serviceaccount:{kubectl.namespace}:bot"
    assert f'User "{bot_name}" cannot list resource "secrets"' in kubectl.refused("get", "secrets", *bot)
    assert ["Username", bot_name] in kubectl.rows("auth", "whoami", *bot)
    nobody = kubectl.refused("get", "pods", *bot[:-1], "--token=nonsense")
    assert nobody == "error: You must be logged in to the server (Unauthorized)\n"


def test_objects_can_be_had_in_every_form(kubectl: Kubectl) -> None:
    pods(kubectl, "one", "two")
    header, *rows = kubectl.rows("get", "pods")
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in rows] == [["one", "0/1", "Pending", "0"], ["two", "0/1", "Pending", "0"]]
    header, *rows = kubectl.rows("get", "pods", "one", "-o", "wide")
    assert header[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert rows[0][5:] == ["<none>"] * 4
    assert kubectl("get", "pods", "-o", "name") == "pod/one\npod/two\n"
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "one two"
    assert (
        kubectl("get", "pods", "-o", "go-template={{range .items}}{{.metadata.name}};{{end}}") == "one;two;"
    )
    columns = "NAME:.metadata.name,IMAGE:.spec.containers[*].image,NODE:.spec.nodeName"
    assert kubectl.rows("get", "pods", "-o", f"custom-columns={columns}") == [
        ["NAME", "IMAGE", "NODE"],
        ["one", "registry.example/app:1", "<none>"],
        ["two", "registry.example/app:1", "<none>"],
    ]
    as_yaml = kubectl("get", "pod", "one", "-o", "yaml")
    assert as_yaml.startswith("apiVersion: v1\nkind: Pod\nmetadata:\n")
    assert "\n  terminationGracePeriodSeconds: 30\n" in as_yaml
    assert "managedFields" not in as_yaml
    assert "manager: kubectl-create" in kubectl("get", "pod", "one", "-o", "yaml", "--show-managed-fields")
    as_json = kubectl.json("get", "pod", "one")
    assert as_json["spec"]["serviceAccountName"] == "default"
    assert as_json["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert [item["kind"] for item in kubectl.json("get", "pods")["items"]] == ["Pod", "Pod"]


def test_what_is_wanted_can_be_selected_and_sorted(kubectl: Kubectl) -> None:
    pods(kubectl, "one", "two", "three")
    names = ("-o", "name")
    assert kubectl("get", "pods", "-l", "app=two", *names) == "pod/two\n"
    assert kubectl("get", "pods", "-l", "app in (one,two),tier,app!=two,!gone", *names) == "pod/one\n"
    assert kubectl("get", "pods", "--field-selector=metadata.name=one", *names) == "pod/one\n"
    assert kubectl("get", "pods", "--field-selector=status.phase!=Pending", *names) == ""
    assert kubectl("get", "pods", "--field-selector=spec.nodeName=", *names).count("pod/") == 3
    assert kubectl("get", "pods", "--chunk-size=1", *names) == "pod/one\npod/three\npod/two\n"
    by_time = kubectl.rows("get", "pods", "--sort-by=.metadata.creationTimestamp", "--no-headers")
    assert sorted(row[0] for row in by_time) == ["one", "three", "two"]
    by_label = kubectl.rows("get", "pods", "--sort-by={.metadata.labels.app}", "-L", "app", "--no-headers")
    assert [row[-1] for row in by_label] == ["one", "three", "two"]
    assert kubectl.rows("get", "pod", "one", "--show-labels")[1][-1] == "app=one,tier=back"
    everywhere = kubectl.rows("get", "pods", "-A", "--field-selector=metadata.name=two")
    assert everywhere[0][0] == "NAMESPACE"
    assert kubectl.namespace in [row[0] for row in everywhere]
    assert kubectl.refused("get", "pods", "--field-selector=bogus=1") == (
        'Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", '
        'field selector "bogus=1": field label not supported: bogus\n'
    )
    assert "unable to parse requirement" in kubectl.refused("get", "pods", "-l", "app in (")


def test_what_is_not_there_is_said_plainly(kubectl: Kubectl) -> None:
    nothing = kubectl.run("get", "pods")
    assert nothing == (0, "", f"No resources found in {kubectl.namespace} namespace.\n")
    assert kubectl.refused("get", "pod", "x") == 'Error from server (NotFound): pods "x" not found\n'
    assert kubectl("get", "pod", "x", "--ignore-not-found") == ""
    assert (
        kubectl.refused("get", "nonsense") == 'error: the server doesn\'t have a resource type "nonsense"\n'
    )
    assert kubectl.refused("get", "deploy", "x").endswith('deployments.apps "x" not found\n')
    assert kubectl.refused("get", "--raw", "/nonsense").startswith("Error from server (NotFound)")


def test_fields_are_explained(kubectl: Kubectl) -> None:
    pod = kubectl("explain", "pod")
    assert "KIND:       Pod\nVERSION:    v1\n" in pod
    assert "  spec\t<PodSpec>\n" in pod
    field = kubectl("explain", "pod.spec.tolerations.operator")
    assert "FIELD: operator <string>" in field
    assert "ENUM:" in field
    whole = kubectl("explain", "deployment", "--recursive")
    assert "GROUP:      apps\n" in whole
    assert "      matchLabels\t<map[string]string>\n" in whole
    assert "  status\t<ResourceClaimStatus>\n" in kubectl("explain", "resourceclaims.resource.k8s.io")
    assert kubectl.refused("explain", "pod.spec.nonsense") == 'error: field "nonsense" does not exist\n'


def test_raw_paths_are_answered(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert kubectl("get", "--raw", "/readyz?verbose").endswith("readyz check passed\n")
    assert json.loads(kubectl("get", "--raw", "/version"))["gitVersion"] == "v1.37.0"
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")
    listed = json.loads(kubectl("get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/serviceaccounts"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["default"]


EVENT = """
apiVersion: v1
kind: Event
metadata: {name: one.1}
involvedObject: {apiVersion: v1, kind: Pod, name: one, namespace: %(namespace)s, uid: %(uid)s}
type: Warning
reason: FailedScheduling
message: "0/5 nodes are available: 5 node(s) did not match node declared features: X."
source: {component: default-scheduler}
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
count: 3
"""


def test_events_are_shown_with_what_they_are_about(kubectl: Kubectl) -> None:
    assert kubectl.run("events") == (0, "", f"No events found in {kubectl.namespace} namespace.\n")
    pods(kubectl, "one")
    uid = kubectl.json("get", "pod", "one")["metadata"]["uid"]
    kubectl("create", "-f", "-", stdin=EVENT % {"namespace": kubectl.namespace, "uid": uid})
    header, row = kubectl.rows("events", "--for", "pod/one")
    assert header == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert row[1:4] == ["Warning", "FailedScheduling", "Pod/one"]
    assert kubectl.rows("get", "events")[1][1:4] == ["Warning", "FailedScheduling", "pod/one"]
    newer = kubectl.json("get", "events.events.k8s.io", "one.1")
    assert (newer["regarding"]["name"], newer["deprecatedCount"]) == ("one", 3)
    assert "FailedScheduling" in kubectl("describe", "pod", "one")
    only = kubectl(
        "get", "events", "--field-selector=involvedObject.name=one,reason=FailedScheduling", "-o", "name"
    )
    assert only == "event/one.1\n"


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        (("namespace", "kube-system"), ["Name: kube-system", "Status: Active", "No LimitRange resource."]),
        (
            ("service", "kubernetes", "-n", "default"),
            ["Type: ClusterIP", "IP: 10.96.0.1", "Port: https 443/TCP"],
        ),
        (("clusterrole", "cluster-admin"), ["*.* [] [] [*]"]),
        (("clusterrolebinding", "cluster-admin"), ["Kind: ClusterRole", "Group system:masters"]),
        (("priorityclass", "system-node-critical"), ["Value: 2000001000", "GlobalDefault: false"]),
        (("serviceaccount", "default"), ["Name: default", "Tokens: <none>"]),
        (("configmap", "kube-root-ca.crt"), ["ca.crt:", "-----BEGIN CERTIFICATE-----"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_every_cluster_has_is_described(
    kubectl: Kubectl, what: tuple[str, ...], lines: list[str]
) -> None:
    shown = [" ".join(line.split()) for line in kubectl("describe", *what).splitlines()]
    assert [line for line in lines if line not in shown] == []


def test_workloads_and_nodes_are_described(kubectl: Kubectl) -> None:
    pods(kubectl, "one")
    shown = [" ".join(line.split()) for line in kubectl("describe", "pod", "one").splitlines()]
    assert {
        "Status: Pending",
        "Image: registry.example/app:1",
        "QoS Class: BestEffort",
        "Node: <none>",
    } <= set(shown)
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    shown = [" ".join(line.split()) for line in kubectl("describe", "deployment", "web").splitlines()]
    assert {"Selector: app=web", "StrategyType: RollingUpdate", "Image: nginx"} <= set(shown)
    node = f"node-of-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=f"apiVersion: v1\nkind: Node\nmetadata: {{name: {node}}}")
    shown = [" ".join(line.split()) for line in kubectl("describe", "node", node).splitlines()]
    assert {
        f"Name: {node}",
        "Taints: node.kubernetes.io/not-ready:NoSchedule",
        "Unschedulable: false",
    } <= set(shown)
    kubectl("delete", "node", node)


def test_a_watch_prints_every_change_as_it_happens(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "one")
    command = ("get", "configmaps", "--watch", "--output-watch-events", "--field-selector=metadata.name=one")
    with kubectl.running(*command) as lines:

        def following() -> list[str]:
            return lines.readline().split()[:3]

        assert following() == ["EVENT", "NAME", "DATA"]
        assert following() == ["ADDED", "one", "0"]
        kubectl("patch", "configmap", "one", "-p", '{"data":{"a":"1"}}')
        assert following() == ["MODIFIED", "one", "1"]
        kubectl("create", "configmap", "two")
        kubectl("delete", "configmap", "one")
        assert following() == ["DELETED", "one", "1"]
        kubectl("create", "configmap", "one")
        assert following() == ["ADDED", "one", "0"]
