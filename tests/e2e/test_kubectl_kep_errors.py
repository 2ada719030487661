"""What kubectl shows to a user who gets a field of one of the five KEPs wrong: the field, and what it must be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import running_cluster
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

GATES = "TaintTolerationComparisonOperators=true,NodeReadinessGates=true,DRAOptionalNodePreparation=true"


ACTION = {"conditionType": "example.com/A", "timeoutSeconds": 5, "failureAction": "Panic"}


@pytest.fixture(scope="module")
def kubectl(right_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home: Path = tmp_path_factory.mktemp("errors")
    with running_cluster(home / "state", "--feature-gates", GATES) as cluster:
        yield Kubectl(cluster, "default", home)


def _pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }


def _node(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **more}


def _volume(resource: str, divisor: str = "") -> dict[str, Any]:
    reference = {"containerName": "c", "resource": resource} | ({"divisor": divisor} if divisor else {})
    return {"name": "v", "downwardAPI": {"items": [{"path": "f", "resourceFieldRef": reference}]}}


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        pytest.param(
            _pod(tolerations=[{"key": "sla", "operator": "Gt", "value": "0950"}]),
            'spec.tolerations[0].value: Invalid value: "0950": must be a valid decimal integer in canonical form',
            id="KEP-5471: a number with a leading zero",
        ),
        pytest.param(
            _pod(tolerations=[{"key": "sla", "operator": "Between", "value": "1"}]),
            'spec.tolerations[0].operator: Unsupported value: "Between"',
            id="KEP-5471: an operator nobody knows",
        ),
        pytest.param(
            _node(status={"declaredFeatures": ["B", "A"]}),
            'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
            id="KEP-5328: features out of order",
        ),
        pytest.param(
            _node(status={"declaredFeatures": ["A", "A"]}),
            'status.declaredFeatures[1]: Duplicate value: "A"',
            id="KEP-5328: a feature twice",
        ),
        pytest.param(
            _node(
                spec={
                    "readinessGates": [
                        {"conditionType": "example.com/A", "timeoutSeconds": 5, "failureAction": "Panic"}
                    ]
                }
            ),
            'spec.readinessGates[0].failureAction: Unsupported value: "Panic"',
            id="KEP-5233: an action nobody knows",
        ),
        pytest.param(
            _pod(volumes=[_volume("assigned.memory")]),
            'Unsupported value: "assigned.memory"',
            id="KEP-6122: a resource the downward API does not have",
        ),
        pytest.param(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "skipNodeOperations": ["Everything"],
                },
            },
            "spec.skipNodeOperations",
            id="KEP-5945: an operation nobody knows",
        ),
    ],
)
def test_kubectl_shows_the_field_and_what_is_wrong_with_it(
    kubectl: Kubectl, wrong: dict[str, Any], shown: str
) -> None:
    complaint = kubectl.refused("create", "-f", "-", stdin=json.dumps(wrong))
    assert f'The {wrong["kind"]} "{wrong["metadata"]["name"]}" is invalid' in complaint
    assert shown in complaint
