"""Every `kubectl create` that concerns a supported kind, and what `kubectl get` shows of it afterwards."""

from __future__ import annotations

import re

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

#: name -> (the command, what it answers, what to get, the header, the row; `AGE` and a few cells are patterns)
CREATED: dict[str, tuple[str, str, str, str, str]] = {
    "configmap": (
        "configmap it --from-literal=a=1 --from-literal=b=2",
        "configmap/it created",
        "cm/it",
        "NAME DATA AGE",
        "it 2 AGE",
    ),
    "secret": (
        "secret generic it --from-literal=password=x",
        "secret/it created",
        "secret/it",
        "NAME TYPE DATA AGE",
        "it Opaque 1 AGE",
    ),
    "docker-registry": (
        "secret docker-registry it --docker-username=u --docker-password=p",
        "secret/it created",
        "secret/it",
        "NAME TYPE DATA AGE",
        "it kubernetes.io/dockerconfigjson 1 AGE",
    ),
    "serviceaccount": ("sa it", "serviceaccount/it created", "sa/it", "NAME AGE", "it AGE"),
    "role": (
        "role it --verb=get,list --resource=pods,deployments.apps",
        "role.rbac.authorization.k8s.io/it created",
        "role/it",
        "NAME CREATED_AT",
        "it TIME",
    ),
    "rolebinding": (
        "rolebinding it --clusterrole=view --user=bob --group=crew",
        "rolebinding.rbac.authorization.k8s.io/it created",
        "rolebinding/it",
        "NAME ROLE AGE USERS GROUPS SERVICEACCOUNTS",
        "it ClusterRole/view AGE bob crew",
    ),
    "quota": (
        "quota it --hard=pods=10,requests.cpu=1",
        "resourcequota/it created",
        "quota/it",
        "NAME REQUEST LIMIT AGE",
        "it .*",
    ),
    "job": (
        "job it --image=busybox -- echo hi",
        "job.batch/it created",
        "job/it",
        "NAME STATUS COMPLETIONS DURATION AGE CONTAINERS IMAGES SELECTOR",
        "it Running 0/1 .*it busybox batch.kubernetes.io/controller-uid=.*",
    ),
    "cronjob": (
        "cronjob it --image=busybox --schedule=0-59/5_*_*_*_* -- echo hi",
        "cronjob.batch/it created",
        "cronjob/it",
        "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST_SCHEDULE AGE CONTAINERS IMAGES SELECTOR",
        "it 0-59/5_[*]_[*]_[*]_[*] <none> False 0 <none> AGE it busybox <none>",
    ),
    "deployment": (
        "deployment it --image=nginx --replicas=3 --port=80",
        "deployment.apps/it created",
        "deploy/it",
        "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
        "it 0/3 .* AGE nginx nginx app=it",
    ),
    "clusterip": (
        "service clusterip it --tcp=80:8080",
        "service/it created",
        "svc/it",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        r"it ClusterIP 10\.96\.\d+\.\d+ <none> 80/TCP AGE app=it",
    ),
    "nodeport": (
        "service nodeport it --tcp=80:8080",
        "service/it created",
        "svc/it",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        r"it NodePort 10\.96\.\d+\.\d+ <none> 80:3\d{4}/TCP AGE app=it",
    ),
    "loadbalancer": (
        "service loadbalancer it --tcp=80:8080",
        "service/it created",
        "svc/it",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        r"it LoadBalancer 10\.96\.\d+\.\d+ <pending> 80:3\d{4}/TCP AGE app=it",
    ),
    "externalname": (
        "service externalname it --external-name=example.com",
        "service/it created",
        "svc/it",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        "it ExternalName <none> example.com <none> AGE app=it",
    ),
    "pdb": (
        "pdb it --selector=app=web --min-available=50%",
        "poddisruptionbudget.policy/it created",
        "pdb/it",
        "NAME MIN_AVAILABLE MAX_UNAVAILABLE ALLOWED_DISRUPTIONS AGE",
        "it 50% N/A 0 AGE",
    ),
}


def shown(kubectl: Kubectl, what: str) -> list[str]:
    """A table with single blanks between cells and `_` inside them."""
    rows = kubectl.rows("get", what, "-o", "wide")
    return [" ".join(cell.replace(" ", "_") for cell in row) for row in rows]


@pytest.mark.parametrize("name", CREATED)
def test_what_is_created_is_shown(kubectl: Kubectl, name: str) -> None:
    command, answer, what, header, row = CREATED[name]
    arguments = [word.replace("_", " ") for word in command.split()]
    assert kubectl("create", *arguments) == f"{answer}\n"
    found = shown(kubectl, what)
    pattern = row.replace("AGE", r"\d+s").replace("TIME", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
    assert found[0] == header
    assert re.fullmatch(pattern, found[1]), found[1]
    again = kubectl.refused("create", *arguments)
    assert f'"{"it"}" already exists' in again
    assert kubectl("delete", what).startswith(f'{answer.partition("/")[0]} "it" deleted')


def test_cluster_wide_things_are_created(kubectl: Kubectl) -> None:
    name = f"of-{kubectl.namespace}"
    made = {
        f"clusterrole {name} --verb=get --resource=nodes": "clusterrole.rbac.authorization.k8s.io",
        f"clusterrolebinding {name} --clusterrole={name} --user=bob": "clusterrolebinding.rbac.authorization.k8s.io",
        f"priorityclass {name} --value=1000": "priorityclass.scheduling.k8s.io",
        f"namespace {name}": "namespace",
    }
    for command, kind in made.items():
        assert kubectl("create", *command.split()) == f"{kind}/{name} created\n"
    assert kubectl("auth", "can-i", "get", "nodes", "--as=bob") == "yes\n"
    assert kubectl.rows("get", "pc", name)[1][:3] == [name, "1000", "false"]
    for kind in made.values():
        assert f'{kind} "{name}" deleted' in kubectl("delete", kind, name)
    assert kubectl.run("auth", "can-i", "get", "nodes", "--as=bob").out == "no\n"


def test_things_are_made_out_of_other_things(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=@daily", "--", "true")
    assert kubectl("create", "job", "now", "--from=cronjob/nightly") == "job.batch/now created\n"
    owner = kubectl.json("get", "job", "now")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "nightly", True)
    ran = kubectl(
        "run", "one", "--image=nginx", "--labels=app=one", "--port=80", "--env=A=B", "--restart=Never"
    )
    assert ran == "pod/one created\n"
    assert kubectl("expose", "pod", "one", "--name=front", "--target-port=8080") == "service/front exposed\n"
    spec = kubectl.json("get", "service", "front")["spec"]
    assert spec["selector"] == {"app": "one"}
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    kubectl("create", "deployment", "web", "--image=nginx", "--port=80")
    assert kubectl("expose", "deployment", "web", "--type=NodePort") == "service/web exposed\n"
    assert kubectl.json("get", "service", "web")["spec"]["ports"][0]["nodePort"] >= 30000


def test_a_token_is_for_whom_and_how_long_was_asked(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "bot")
    token = kubectl.json("create", "token", "bot", "--duration=20m", "--audience=vault")
    assert token["kind"] == "TokenRequest"
    assert token["spec"]["audiences"] == ["vault"]
    assert token["spec"]["expirationSeconds"] == 1200
    assert token["status"]["token"].count(".") == 2
    assert kubectl.refused("create", "token", "nobody") == (
        'error: failed to create token: serviceaccounts "nobody" not found\n'
    )
    assert "may not specify a duration less than 10 minutes" in kubectl.refused(
        "create", "token", "bot", "--duration=1m"
    )


def test_a_dry_run_shows_what_would_be_and_leaves_nothing(kubectl: Kubectl) -> None:
    answer = kubectl("create", "deployment", "web", "--image=nginx", "--dry-run=server")
    assert answer == "deployment.apps/web created (server dry run)\n"
    would = kubectl("create", "deployment", "web", "--image=nginx", "--dry-run=server", "-o", "yaml")
    assert "progressDeadlineSeconds: 600\n" in would
    assert "  uid: " in would
    assert kubectl.refused("get", "deployment", "web").endswith('deployments.apps "web" not found\n')


def test_what_is_wrong_is_said_field_by_field(kubectl: Kubectl) -> None:
    assert kubectl.refused("create", "deployment", "Web", "--image=nginx").startswith(
        'error: failed to create deployment: Deployment.apps "Web" is invalid: metadata.name: Invalid value: "Web": '
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
    )
    bad = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec:
  replicas: -1
  selectr: {}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1", imag: 3}]}
"""
    file = kubectl.file("bad.yaml", bad)
    assert kubectl.refused("create", "-f", file) == (
        f'Error from server (BadRequest): error when creating "{file}": Deployment in version "v1" cannot be handled '
        'as a Deployment: strict decoding error: unknown field "spec.selectr", unknown field '
        '"spec.template.spec.containers[0].imag"\n'
    )
    said = kubectl.refused("create", "--validate=warn", "-f", file)
    assert said == (
        'Warning: unknown field "spec.selectr"\n'
        'Warning: unknown field "spec.template.spec.containers[0].imag"\n'
        'The Deployment "bad" is invalid: \n'
        "* spec.replicas: Invalid value: -1: must be greater than or equal to 0\n"
        "* spec.selector: Required value\n"
        '* spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`\n'
    )
    assert kubectl.refused("apply", "--server-side", "-f", file) == (
        "Error from server (BadRequest): failed to create typed patch object "
        f"({kubectl.namespace}/bad; apps/v1, Kind=Deployment): "
        ".spec.selectr: field not declared in schema\n"
    )
