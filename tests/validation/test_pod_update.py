"""What may change in a pod that exists, and through which door."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.pod import Binding, Pod, PodTemplate
from nodeward.validation.pod.pod import validate_binding
from nodeward.validation.pod.update import validate_ephemeral_containers_update
from nodeward.validation.registry import VALIDATORS
from tests.validation.pods import POD, pod_context, stored_pods
from tests.validation.tables import DROP, Case, case, check, check_create, check_update, read

_C = "spec.containers[0]"
_FROZEN = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_NODE = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_GATED = {"spec.schedulingGates": [{"name": "g"}]}


def _terms(*keys: str) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


@pytest.mark.parametrize(
    "one",
    [
        case("nothing changed is fine"),
        case("an image may change", {f"{_C}.image": "pause:4"}),
        case(
            "a deadline may be set and come closer",
            {"spec.activeDeadlineSeconds": 5},
            before={"spec.activeDeadlineSeconds": 9},
        ),
        case(
            "a deadline does not move away",
            {"spec.activeDeadlineSeconds": 9},
            "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value",
            before={"spec.activeDeadlineSeconds": 5},
        ),
        case(
            "a deadline does not go away",
            {"spec.activeDeadlineSeconds": DROP},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
            before={"spec.activeDeadlineSeconds": 5},
        ),
        case(
            "containers do not come or go",
            {"spec.containers[1]": {"name": "d", "image": "i"}},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        case(
            "tolerations may be added and last longer",
            {
                "spec.tolerations": [
                    {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
                    {"key": "l", "operator": "Exists"},
                ]
            },
            before={"spec.tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]},
        ),
        case(
            "tolerations do not go away",
            {"spec.tolerations": []},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            before={"spec.tolerations": [{"key": "k", "operator": "Exists"}]},
        ),
        case(
            "numeric tolerations may be added where there were some, even with the gate off",
            {"spec.tolerations[1]": {"key": "l", "operator": "Lt", "value": "1"}},
            before={"spec.tolerations": [{"key": "k", "operator": "Gt", "value": "1"}]},
            off=("TaintTolerationComparisonOperators",),
        ),
        case(
            "but not where there were none",
            {"spec.tolerations": [{"key": "l", "operator": "Lt", "value": "1"}]},
            'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
            off=("TaintTolerationComparisonOperators",),
        ),
        case("gates may go", {"spec.schedulingGates": []}, before=_GATED),
        case(
            "gates do not come",
            {"spec.schedulingGates": [{"name": "g"}, {"name": "h"}]},
            "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
            before=_GATED,
        ),
        case(
            "resources change elsewhere",
            {f"{_C}.resources": {"requests": {"cpu": "1"}}},
            _FROZEN
            + '@@ -13,7 +13,9 @@\n    "Env": null,\n    "Resources": {\n     "Limits": null,\n-    "Requests": null,\n'
            '+    "Requests": {\n+     "cpu": "1"\n+    },\n     "Claims": null\n    },\n    "ResizePolicy": null,\n',
        ),
        case("behind gates a node selector may grow", {"spec.nodeSelector": {"a": "b"}}, before=_GATED),
        case(
            "but not change",
            {"spec.nodeSelector": {"a": "c"}},
            'spec.nodeSelector: Invalid value: {"a":"c"}: '
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            before={**_GATED, "spec.nodeSelector": {"a": "b"}},
        ),
        case("behind gates node affinity may be set", {_NODE: _terms("a")}, before=_GATED),
        case("and become narrower", {_NODE: _terms("a", "b")}, before={**_GATED, _NODE: _terms("a")}),
        case(
            "but not wider",
            {_NODE: _terms("b")},
            f"{_NODE}.nodeSelectorTerms[0]: Invalid value: {{...",
            before={**_GATED, _NODE: _terms("a")},
        ),
        case(
            "mirror and AppArmor annotations stay",
            {"metadata.annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}},
            "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod "
            "annotation",
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add "
            "AppArmor annotations",
            before={"spec.nodeName": "n", "metadata.annotations": {"kubernetes.io/config.mirror": "x"}},
        ),
        case(
            "what was allowed once stays allowed",
            {"metadata.labels": {"a": "b"}},
            before={
                f"{_C}.env": [{"name": "1 A"}],
                "spec.volumes": [{"name": "v", "image": {"pullPolicy": "Always"}}],
                f"{_C}.resources": {"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}},
                "spec.securityContext": {
                    "seLinuxChangePolicy": "MountOption",
                    "sysctls": [{"name": "net.a"}],
                },
                "spec.hostNetwork": True,
                "spec.hostUsers": False,
            },
            off=("RelaxedEnvironmentVariableValidation",),
        ),
    ],
    ids=str,
)
def test_updates(one: Case) -> None:
    new, old = stored_pods(one)
    check(VALIDATORS[Pod].update(new, old, pod_context(one)), one.errors)


_E = {"name": "e", "image": "i"}


@pytest.mark.parametrize(
    "one",
    [
        case("they are added", {"spec.ephemeralContainers": [_E]}),
        case(
            "they do not go away",
            {"spec.ephemeralContainers": []},
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed\n',
            before={"spec.ephemeralContainers": [_E]},
        ),
        case(
            "they do not change",
            {"spec.ephemeralContainers": [{**_E, "image": "j"}]},
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed\n'
            '@@ -1,6 +1,6 @@\n {\n  "Name": "e",\n- "Image": "i",\n+ "Image": "j",\n  "Command": null,\n  "Args": '
            "null,\n"
            '  "WorkingDir": "",\n',
            before={"spec.ephemeralContainers": [_E]},
        ),
        case(
            "static pods have none",
            {"spec.ephemeralContainers": [_E]},
            ": Forbidden: static pods do not support ephemeral containers",
            before={"spec.nodeName": "n", "metadata.annotations": {"kubernetes.io/config.mirror": "x"}},
        ),
    ],
    ids=str,
)
def test_ephemeral_containers(one: Case) -> None:
    new, old = stored_pods(one)
    check(validate_ephemeral_containers_update(new, old, pod_context(one)), one.errors)


@pytest.mark.parametrize(
    ("target", "errors"),
    [
        pytest.param({"name": "n"}, (), id="a pod is bound to a node"),
        pytest.param({"kind": "Node", "name": "n"}, (), id="which may say that it is one"),
        pytest.param({}, ("target.name: Required value",), id="the node has a name"),
        pytest.param(
            {"kind": "Pod", "name": "N"},
            ('target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',),
            id="nothing else is bound to",
        ),
        pytest.param(
            {"name": "N"},
            ('target.name: Invalid value: "N": a lowercase RFC 1123 subdomain must consist of...',),
            id="the name is a name",
        ),
    ],
)
def test_bindings(target: dict[str, str], errors: tuple[str, ...]) -> None:
    check(validate_binding(read(Binding, {"metadata": {"name": "a"}, "target": target})), errors)


_TEMPLATE = {"metadata": {"name": "t", "namespace": "default"}, "template": {"spec": POD["spec"]}}


@pytest.mark.parametrize(
    "one",
    [
        case("a template is a pod without a name"),
        case("blanks around an image are a pod's problem", {"template.spec.containers[0].image": " i"}),
        case(
            "a port of the host may be left out",
            {"template.spec.hostNetwork": True, "template.spec.containers[0].ports": [{"containerPort": 1}]},
        ),
        case(
            "errors are found below the template",
            {"template.metadata": {"labels": {"a b": ""}}, "template.spec.restartPolicy": "x"},
            'template.labels: Invalid value: "a b": name part must consist...',
            'template.spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"',
        ),
        case(
            "there are no ephemeral containers in a template",
            {"template.spec.ephemeralContainers": [_E]},
            "template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
        ),
    ],
    ids=str,
)
def test_templates(one: Case) -> None:
    check_create(PodTemplate, _TEMPLATE, one)


def test_a_template_with_numeric_tolerations_stays_writable_with_the_gate_off() -> None:
    numeric = {"template.spec.tolerations": [{"key": "k", "operator": "Gt", "value": "1"}]}
    check_update(PodTemplate, _TEMPLATE, case("", {"metadata.labels": {"a": "b"}}, before=numeric))
