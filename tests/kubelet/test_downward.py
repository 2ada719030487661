"""What a pod may learn about itself, as text."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ResourceFieldSelector
from nodeward.base.errors import WorldError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.downward import field_text, resource_text, variable_text

ALLOCATABLE = {"cpu": Quantity.parse("3500m"), "memory": Quantity.parse("7Gi")}


def pod(**spec: Any) -> Pod:
    container = {
        "name": "c",
        "resources": {
            "limits": {"memory": "100Mi", "hugepages-2Mi": "4Mi"},
            "requests": {"cpu": "250m"},
        },
    }
    tree = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "labels": {"b": "2", "a": "1"},
            "annotations": {"Text": 'two\nlines "quoted" \\ and ü', "control": "\x01\x7f"},
        },
        "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": [container], **spec},
        "status": {"podIP": "10.1.0.5", "podIPs": [{"ip": "10.1.0.5"}, {"ip": "fd00::5"}]},
    }
    return codec.from_tree(tree, Pod)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("metadata.annotations", 'Text="two\\nlines \\"quoted\\" \\\\ and ü"\ncontrol="\\x01\\x7f"'),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['Text']", 'two\nlines "quoted" \\ and ü'),
    ],
)
def test_fields_of_metadata_are_texts(path: str, text: str) -> None:
    assert field_text(pod(), path) == text


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("metadata.finalizers", "unsupported fieldPath: metadata.finalizers"),
        ("spec.x['a']", "fieldPath \"spec.x['a']\" does not support subscript"),
        ("metadata.labels['-bad-']", "invalid key subscript in metadata.labels['-bad-']: "),
    ],
)
def test_other_fields_are_refused(path: str, why: str) -> None:
    with pytest.raises(WorldError) as caught:
        field_text(pod(), path)
    assert str(caught.value).startswith(why)


def test_variables_also_know_where_the_pod_runs() -> None:
    hosts = ("10.0.0.1", "fd00::1")
    wanted = {
        "spec.nodeName": "n1",
        "spec.serviceAccountName": "robot",
        "status.hostIP": "10.0.0.1",
        "status.hostIPs": "10.0.0.1,fd00::1",
        "status.podIP": "10.1.0.5",
        "status.podIPs": "10.1.0.5,fd00::5",
        "metadata.name": "p",
    }
    assert {path: variable_text(pod(), path, hosts) for path in wanted} == wanted


@pytest.mark.parametrize(
    ("resource", "divisor", "text"),
    [
        ("requests.cpu", "0", "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.memory", "0", str(100 << 20)),
        ("limits.memory", "1Mi", "100"),
        ("limits.memory", "1Gi", "1"),
        ("limits.hugepages-2Mi", "1Mi", "4"),
        ("requests.memory", "0", "0"),
        # What is not limited is what the node has.
        ("limits.cpu", "0", "4"),
        ("limits.cpu", "1m", "3500"),
        ("limits.ephemeral-storage", "0", "0"),
    ],
)
def test_amounts_are_in_units_of_the_divisor_rounded_up(resource: str, divisor: str, text: str) -> None:
    reference = ResourceFieldSelector(container_name="c", resource=resource, divisor=Quantity.parse(divisor))
    assert resource_text(pod(), reference, ALLOCATABLE) == text


def test_a_limit_of_the_whole_pod_bounds_its_containers() -> None:
    whole = pod(resources={"limits": {"cpu": "2"}})
    reference = ResourceFieldSelector(container_name="c", resource="limits.cpu")
    assert resource_text(whole, reference, ALLOCATABLE) == "2"


@pytest.mark.parametrize(
    ("container", "resource", "why"),
    [
        ("no", "limits.cpu", "container no not found"),
        ("c", "limits.bananas", "unsupported container resource : limits.bananas"),
    ],
)
def test_references_that_lead_nowhere_are_told(container: str, resource: str, why: str) -> None:
    with pytest.raises(WorldError) as caught:
        resource_text(pod(), ResourceFieldSelector(container_name=container, resource=resource), ALLOCATABLE)
    assert str(caught.value) == why


def test_exclusive_cpus_are_asked_for_by_pod_and_container() -> None:
    asked = []

    def assigned(uid: str, container: str) -> str:
        asked.append((uid, container))
        return "0-3,7"

    reference = ResourceFieldSelector(container_name="c", resource="assigned.cpuset")
    assert resource_text(pod(), reference, ALLOCATABLE, assigned_cpus=assigned) == "0-3,7"
    assert asked == [("u", "c")]
    missing = ResourceFieldSelector(container_name="no", resource="assigned.cpuset")
    with pytest.raises(WorldError, match="container no not found"):
        resource_text(pod(), missing, ALLOCATABLE, assigned_cpus=assigned)


def test_variables_do_not_show_exclusive_cpus() -> None:
    reference = ResourceFieldSelector(resource="assigned.cpuset")
    container = pod().spec.containers[0]
    with pytest.raises(WorldError) as caught:
        resource_text(pod(), reference, ALLOCATABLE, container)
    assert str(caught.value) == "unsupported container resource : assigned.cpuset"
