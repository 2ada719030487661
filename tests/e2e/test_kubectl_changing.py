"""Changing and removing things with the real kubectl: what it answers, and what is there afterwards."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl import Kubectl
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "nginx:1", ports: [{containerPort: 80}]}]}
"""
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {a: "1", b: "2"}
"""


def image(kubectl: Kubectl) -> str:
    return kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def data(kubectl: Kubectl) -> str:
    return kubectl("get", "configmap", "settings", "-o", "jsonpath={.data}")


def test_apply_creates_keeps_changes_and_takes_away(kubectl: Kubectl) -> None:
    file = kubectl.file("all.yaml", f"{WEB}---{SETTINGS}")
    assert kubectl("apply", "-f", file) == "deployment.apps/web created\nconfigmap/settings created\n"
    assert kubectl("apply", "-f", file) == "deployment.apps/web unchanged\nconfigmap/settings unchanged\n"
    kubectl("scale", "deployment", "web", "--replicas=5")
    kubectl("patch", "configmap", "settings", "-p", '{"data":{"mine":"x"}}')
    kubectl.file("all.yaml", f"{WEB}---{SETTINGS}".replace("nginx:1", "nginx:2").replace(', b: "2"', ""))
    tried = kubectl("apply", "-f", file, "--dry-run=server")
    assert tried == (
        "deployment.apps/web configured (server dry run)\nconfigmap/settings configured (server dry run)\n"
    )
    assert image(kubectl) == "nginx:1"
    assert kubectl("apply", "-f", file) == "deployment.apps/web configured\nconfigmap/settings configured\n"
    assert image(kubectl) == "nginx:2"
    assert data(kubectl) == '{"a":"1","mine":"x"}'
    assert kubectl("apply", "view-last-applied", "configmap/settings", "-o", "json").count('"a": "1"') == 1
    assert 'deployment.apps "web" deleted' in kubectl("delete", "-f", file)


def test_server_side_apply_takes_over_shares_and_refuses(kubectl: Kubectl) -> None:
    file = kubectl.file("settings.yaml", SETTINGS)
    kubectl("apply", "-f", file)
    kubectl.file("settings.yaml", SETTINGS.replace(', b: "2"', ""))
    # What was applied by the client before is the server's to take away now.
    assert kubectl("apply", "--server-side", "-f", file) == "configmap/settings serverside-applied\n"
    assert data(kubectl) == '{"a":"1"}'
    other = ("apply", "--server-side", "--field-manager=other", "-f", file)
    assert kubectl(*other) == "configmap/settings serverside-applied\n"
    kubectl.file("settings.yaml", SETTINGS.replace('a: "1"', 'a: "9"'))
    assert kubectl.refused(*other).startswith(
        'error: Apply failed with 1 conflict: conflict with "kubectl": .data.a\nPlease review the fields above'
    )
    assert data(kubectl) == '{"a":"1"}'
    assert kubectl(*other, "--force-conflicts") == "configmap/settings serverside-applied\n"
    assert data(kubectl) == '{"a":"9","b":"2"}'
    entries = kubectl.json("get", "configmap", "settings", "--show-managed-fields")["metadata"][
        "managedFields"
    ]
    owners = {entry["manager"]: list(entry["fieldsV1"].get("f:data", {})) for entry in entries}
    assert owners["other"] == ["f:a", "f:b"]
    assert owners["kubectl"] == []


def test_diff_shows_what_apply_would_do(kubectl: Kubectl) -> None:
    file = kubectl.file("all.yaml", f"{WEB}---{SETTINGS}")
    new = kubectl.run("diff", "-f", file)
    assert (new.code, new.out.count("+kind: ")) == (1, 2)
    kubectl("apply", "-f", file)
    assert kubectl.run("diff", "-f", file) == (0, "", "")
    kubectl.file("all.yaml", f"{WEB}---{SETTINGS}".replace("nginx:1", "nginx:2").replace(', b: "2"', ""))
    for flags in ((), ("--server-side", "--force-conflicts")):
        shown = kubectl.run("diff", "-f", file, *flags)
        assert shown.code == 1
        assert "-      - image: nginx:1\n+      - image: nginx:2\n" in shown.out
        assert ('\n-  b: "2"\n' in shown.out) == (not flags)
    assert image(kubectl) == "nginx:1"


def test_edit_saves_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=WEB)
    assert (
        kubectl("edit", "deployment", "web", editor="sed -i s/nginx:1/nginx:2/")
        == "deployment.apps/web edited\n"
    )
    assert image(kubectl) == "nginx:2"
    unchanged = kubectl.run("edit", "deployment", "web", editor="true")
    assert (unchanged.code, unchanged.out + unchanged.err) == (0, "Edit cancelled, no changes made.\n")
    patched = kubectl("edit", "deployment", "web", "--output-patch", editor="sed -i s/nginx:2/nginx:3/")
    assert '"containers":[{"image":"nginx:3","name":"main"}]' in patched
    bad = kubectl.run("edit", "deployment", "web", editor="sed -i s/replicas:.*/replicas:\\ -1/")
    assert bad.code == 1
    assert bad.err.startswith('error: deployments.apps "web" is invalid\n')
    assert image(kubectl) == "nginx:3"


def test_labels_and_annotations_are_set_changed_and_removed(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=SETTINGS)
    one = "configmap/settings"
    assert kubectl("label", one, "x=1", "y=2") == "configmap/settings labeled\n"
    assert (
        kubectl.refused("label", one, "x=3")
        == "error: 'x' already has a value (1), and --overwrite is false\n"
    )
    assert kubectl("label", one, "x=3", "--overwrite") == "configmap/settings labeled\n"
    assert kubectl("label", one, "y-") == "configmap/settings unlabeled\n"
    assert kubectl("label", "configmaps", "-l", "app=web", "z=4") == "configmap/settings labeled\n"
    assert kubectl.json("get", one)["metadata"]["labels"] == {"app": "web", "x": "3", "z": "4"}
    assert kubectl("annotate", one, "note=some words") == "configmap/settings annotated\n"
    assert kubectl("annotate", one, "note-", "other=1") == "configmap/settings annotated\n"
    assert kubectl.json("get", one)["metadata"]["annotations"] == {"other": "1"}
    assert "a valid label must be an empty string or consist of alphanumeric characters" in kubectl.refused(
        "label", one, "x=-bad-", "--overwrite"
    )


def test_each_kind_of_patch_changes_what_it_says(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=WEB)
    sidecar = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
    web = ("patch", "deployment", "web")
    assert kubectl(*web, "-p", sidecar) == "deployment.apps/web patched\n"
    assert kubectl(*web, "-p", sidecar) == "deployment.apps/web patched (no change)\n"
    containers = "jsonpath={.spec.template.spec.containers[*].name}"
    assert kubectl("get", "deployment", "web", "-o", containers) == "side main"
    kubectl(*web, "--type=merge", "-p", sidecar)
    assert kubectl("get", "deployment", "web", "-o", containers) == "side"
    kubectl(*web, "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":7}]')
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "7"
    assert kubectl.refused(
        *web, "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":1}]'
    ) == ("The request is invalid: the server rejected our request due to an error in our request\n")
    status = '{"status":{"replicas":7,"observedGeneration":4}}'
    assert (
        kubectl(*web, "--subresource=status", "--type=merge", "-p", status) == "deployment.apps/web patched\n"
    )
    assert kubectl.rows("get", "deployment", "web", "--subresource=scale")[1][:3] == ["web", "7", "7"]
    assert kubectl.refused(*web, "-p", '{"spec":{"selector":{"matchLabels":{"other":"x"}}}}').startswith(
        'The Deployment "web" is invalid: '
    )


def test_replace_needs_something_to_replace(kubectl: Kubectl) -> None:
    file = kubectl.file("web.yaml", WEB)
    assert kubectl.refused("replace", "-f", file) == (
        f'Error from server (NotFound): error when replacing "{file}": deployments.apps "web" not found\n'
    )
    kubectl("create", "-f", file)
    before = kubectl.json("get", "deployment", "web")["metadata"]
    kubectl.file("web.yaml", WEB.replace("nginx:1", "nginx:2"))
    assert kubectl("replace", "-f", file) == "deployment.apps/web replaced\n"
    after = kubectl.json("get", "deployment", "web")["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"] + 1)
    assert kubectl("replace", "--force", "-f", file).endswith("deployment.apps/web replaced\n")
    assert kubectl.json("get", "deployment", "web")["metadata"]["uid"] != before["uid"]
    stale = WEB.replace("name: web, ", f'name: web, resourceVersion: "{before["resourceVersion"]}", ', 1)
    assert "the object has been modified" in kubectl.refused("replace", "-f", "-", stdin=stale)


def test_scale_and_set_change_the_workload(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=WEB)
    assert kubectl("scale", "deployment", "web", "--replicas=5") == "deployment.apps/web scaled\n"
    wrong = kubectl.refused("scale", "deployment/web", "--replicas=3", "--current-replicas=4")
    assert wrong == "error: Expected replicas to be 4, was 5\n"
    assert kubectl("scale", "deployment/web", "--replicas=3", "--current-replicas=5").endswith("scaled\n")
    assert kubectl("set", "image", "deployment/web", "main=nginx:2") == "deployment.apps/web image updated\n"
    assert kubectl("set", "env", "deployment/web", "A=B") == "deployment.apps/web env updated\n"
    assert kubectl("set", "resources", "deployment/web", "--limits=cpu=1,memory=1Gi").endswith(
        "resource requirements updated\n"
    )
    assert kubectl("set", "serviceaccount", "deployment/web", "bot").endswith("serviceaccount updated\n")
    spec = kubectl.json("get", "deployment", "web")["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], container["image"]) == (3, "nginx:2")
    assert container["env"] == [{"name": "A", "value": "B"}]
    assert container["resources"] == {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert spec["template"]["spec"]["serviceAccountName"] == "bot"
    assert kubectl("rollout", "history", "deployment/web").startswith("deployment.apps/web ")
    assert kubectl("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    assert kubectl("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"
    assert kubectl("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    template = kubectl.json("get", "deployment", "web")["spec"]["template"]["metadata"]
    assert list(template["annotations"]) == ["kubectl.kubernetes.io/restartedAt"]


def test_wait_sees_conditions_values_and_the_end(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=nginx")
    late = kubectl.refused("wait", "pod/one", "--for=condition=Ready", "--timeout=1ms")
    assert late == "error: timed out waiting for the condition on pods/one\n"
    status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    patience = f"--timeout={PATIENCE_SECONDS:.0f}s"
    with (
        kubectl.running("wait", "pod/one", "--for=condition=Ready", patience) as ready,
        kubectl.running("wait", "pod/one", "--for=jsonpath={.status.phase}=Running", patience) as running,
        kubectl.running("get", "pod", "one", "--watch", "-o", "name") as watching,
    ):
        assert watching.readline() == "pod/one\n"
        kubectl("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", status)
        assert ready.readline() == "pod/one condition met\n"
        assert running.readline() == "pod/one condition met\n"
    with kubectl.running("wait", "pod/one", "--for=delete", patience) as gone:
        assert kubectl("delete", "pod", "one", "--wait=false").startswith('pod "one" deleted')
        assert gone.read() in ("pod/one condition met\n", "")
    assert kubectl.refused("get", "pod", "one").endswith('pods "one" not found\n')


NODE = """
apiVersion: v1
kind: Node
metadata: {name: %(node)s}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {nodeName: %(node)s, containers: [{name: main, image: nginx}]}
"""


def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    node = f"node-of-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=NODE % {"node": node})
    assert kubectl("taint", "node", node, "a=b:NoSchedule") == f"node/{node} tainted\n"
    assert "already has a taint(s) with same effect(s)" in kubectl.refused(
        "taint", "node", node, "a=c:NoSchedule"
    )
    assert kubectl("taint", "node", node, "a=c:NoSchedule", "--overwrite") == f"node/{node} modified\n"
    assert kubectl("taint", "node", node, "a-") == f"node/{node} untainted\n"
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert kubectl.rows("get", "node", node)[1][:3] == [node, "Unknown,SchedulingDisabled", "<none>"]
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
    tried = kubectl("drain", node, "--dry-run=server", "--force")
    assert f"evicting pod {kubectl.namespace}/one (server dry run)\n" in tried
    assert tried.endswith(f"node/{node} drained (server dry run)\n")
    assert "deletionTimestamp" not in kubectl.json("get", "pod", "one")["metadata"]
    drained = kubectl("drain", node, "--force", "--grace-period=0")
    assert drained.endswith(f"node/{node} drained\n")
    assert kubectl.refused("get", "pod", "one").endswith('pods "one" not found\n')
    assert kubectl("delete", "node", node).startswith(f'node "{node}" deleted')


def test_delete_takes_away_what_was_meant_and_no_more(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c", "d"):
        kubectl("create", "configmap", name)
    kubectl("label", "configmap", "a", "b", "goes=yes")
    tried = kubectl("delete", "configmap", "a", "--dry-run=server")
    assert tried.startswith('configmap "a" deleted')
    assert tried.endswith("(server dry run)\n")
    assert kubectl("delete", "configmaps", "-l", "goes=yes").count("deleted") == 2
    assert kubectl("get", "configmaps", "-o", "name").split() == [
        "configmap/c", "configmap/d", "configmap/kube-root-ca.crt"
    ]  # fmt: skip
    assert kubectl("delete", "configmap", "c", "gone", "--ignore-not-found").count("deleted") == 1
    assert kubectl.refused("delete", "configmap", "gone") == (
        'Error from server (NotFound): configmaps "gone" not found\n'
    )
    kubectl("patch", "configmap", "d", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "configmap", "d", "--wait=false")
    assert "deletionTimestamp" in kubectl.json("get", "configmap", "d")["metadata"]
    kubectl("patch", "configmap", "d", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert kubectl.refused("get", "configmap", "d").endswith('configmaps "d" not found\n')
    kubectl("run", "one", "--image=nginx")
    forced = kubectl.run("delete", "pod", "one", "--force", "--grace-period=0")
    assert (forced.code, forced.out.startswith('pod "one" force deleted')) == (0, True)


def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    assert kubectl.refused("delete", "namespace", "default").endswith(
        'namespaces "default" is forbidden: this namespace may not be deleted\n'
    )
    kubectl("create", "-f", "-", stdin=f"{WEB}---{SETTINGS}")
    kubectl("run", "one", "--image=nginx")
    assert kubectl("delete", "namespace", kubectl.namespace).startswith(
        f'namespace "{kubectl.namespace}" deleted'
    )
    assert kubectl.run("get", "pods,configmaps,deployments,serviceaccounts").out == ""
    assert f'namespaces "{kubectl.namespace}" not found' in kubectl.refused("create", "configmap", "late")


def test_prune_takes_away_what_is_no_longer_in_the_file(kubectl: Kubectl) -> None:
    file = kubectl.file("all.yaml", f"{WEB}---{SETTINGS}")
    prune = ("apply", "-f", file, "-l", "app=web", "--prune", "--prune-allowlist=core/v1/ConfigMap")
    assert kubectl(*prune) == "deployment.apps/web created\nconfigmap/settings created\n"
    kubectl.file("all.yaml", WEB)
    assert kubectl(*prune) == "deployment.apps/web unchanged\nconfigmap/settings pruned\n"
