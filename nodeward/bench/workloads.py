"""The clusters and pods the scheduler is measured with: one workload per thing that costs something to decide.

Nodes and pods are bytes of the API, decoded one by one, so that equal pods share no object, as in a real cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.codec import decoder
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.features.declared import Feature, Framework, Requirements

SLA: Final = "node.example.com/sla"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
#: Features a pod needs, whatever nodes declare.
NEEDED: Final = 3

#: (the pod's group, its tree) -> nothing; the tree is changed
Shape = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one kind. `aim`: pods/s that were set as a goal, 0 if none was."""

    name: str
    says: str
    shape: Shape
    aim: int = 0
    #: different pods that take turns
    signatures: int = 20
    #: features nodes declare; 0: those the product knows
    features: int = 0
    #: how many of the pods that are asked for are measured: slow ones take a share
    share: float = 1.0


def features_named(number: int) -> Framework:
    """That many features, the first few of which every pod needs."""

    def feature(index: int) -> Feature:
        return Feature(
            name=f"Feature{index:03}",
            requirements=Requirements((f"Gate{index:03}",)),
            scheduling_rule=lambda _: index < NEEDED,
            scheduling_fields=(),
        )

    return Framework(feature(index) for index in range(number))


def nodes(number: int, features: int = 0) -> Iterator[Node]:
    """In three zones; one in ten lacks a feature that is needed, and one in five is tainted with too low an SLA."""
    decode = decoder(Node).decode
    for index in range(number):
        declared = [f"Feature{each:03}" for each in range(features)]
        if declared and not index % 10:
            del declared[0]
        yield decode(
            msgspec.json.encode(
                {
                    "metadata": {
                        "name": f"node-{index}",
                        "uid": f"n{index}",
                        "labels": {
                            HOSTNAME: f"node-{index}",
                            ZONE: f"zone-{index % 3}",
                            "pool": "abcd"[index % 4],
                        },
                    },
                    "spec": {
                        "taints": [{"key": SLA, "value": str(95 + index % 5), "effect": "PreferNoSchedule"}]
                    },
                    "status": {
                        "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "declaredFeatures": declared,
                    },
                }
            )
        )


def pods(workload: Workload, number: int, prefix: str = "pod") -> Iterator[Pod]:
    """They take turns: pods of one signature are as far from each other as can be."""
    templates: list[bytes] = []
    for group in range(workload.signatures):
        tree = tree_of("NAME", f"app-{group}")
        tree["metadata"]["uid"] = "NAME"
        workload.shape(group, tree)
        templates.append(msgspec.json.encode(tree))
    decode = decoder(Pod).decode
    for index in range(number):
        yield decode(templates[index % len(templates)].replace(b"NAME", b"%b-%d" % (prefix.encode(), index)))


def tree_of(name: str, app: str) -> dict[str, Any]:
    """A pod as a ReplicaSet makes it."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": app, "pod-template-hash": "6d4cf56db6"},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/app:1.0",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }
            ],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
        },
    }


def plain(group: int, tree: dict[str, Any]) -> None:
    """As they come."""


def tolerating(group: int, tree: dict[str, Any]) -> None:
    """Those that ask for a level of service."""
    tree["spec"]["tolerations"].append(
        {"key": SLA, "operator": "Gt", "value": str(94 + group % 5), "effect": ""}
    )


def _choosy(group: int, tree: dict[str, Any]) -> None:
    wish = {"key": "pool", "operator": "In", "values": ["abcd"[group % 4], "abcd"[(group + 1) % 4]]}
    liked = {"key": ZONE, "operator": "In", "values": [f"zone-{group % 3}"]}
    tree["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [wish]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "preference": {"matchExpressions": [liked]}}
            ],
        }
    }


def _spread(group: int, tree: dict[str, Any]) -> None:
    selector = {"matchLabels": {"app": tree["metadata"]["labels"]["app"]}}
    tree["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector},
        {
            "maxSkew": 3,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        },
    ]


def _near(group: int, tree: dict[str, Any]) -> None:
    _term(tree, "podAffinity", ZONE)


def _apart(group: int, tree: dict[str, Any]) -> None:
    _term(tree, "podAntiAffinity", HOSTNAME)


def _term(tree: dict[str, Any], kind: str, key: str) -> None:
    selector = {"matchLabels": {"app": tree["metadata"]["labels"]["app"]}}
    term = {"topologyKey": key, "labelSelector": selector}
    tree["spec"]["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


WORKLOADS: Final = (
    Workload("plain", "CPU and memory", plain, 10_000),
    Workload("plain-alike", "CPU and memory, all pods alike", plain, 10_000, signatures=1),
    Workload("features-20", f"{NEEDED} of 20 declared features needed", plain, 10_000, features=20),
    Workload("features-100", f"{NEEDED} of 100 declared features needed", plain, 10_000, features=100),
    Workload("tolerations", "a numeric toleration (Gt)", tolerating, 10_000),
    Workload("node-affinity", "required and preferred node affinity", _choosy),
    Workload("spread", "must be even over zones, should be over hosts", _spread, 2_000, share=0.5),
    Workload("affinity", "must be in a zone with its like", _near, 500, share=0.2),
    Workload("anti-affinity", "must not be on a host with its like", _apart, 500, share=0.2),
)
