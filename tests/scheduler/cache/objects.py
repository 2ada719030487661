"""Small nodes and pods to fill a table with, and strategies that make them at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.pod import PodView

MI = 1024 * 1024
GPU = "example.com/gpu"


def new_table(*, numeric: bool = True) -> NodeTable:
    return NodeTable()


def node(
    name: str,
    *,
    allocatable: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Node:
    """A node; `more` are further parts of its spec and status, in the words of the API."""
    status = more.pop("status", {})
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"} if allocatable is None else allocatable
    tree = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": more,
        "status": {"allocatable": amounts, **status},
    }
    return from_tree(tree, Node)


def pod(
    name: str,
    *,
    requests: Mapping[str, str] | None = None,
    ports: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> PodView:
    """A pod with one container; its uid is its name."""
    metadata = {"name": name, "namespace": "default", "uid": name, **spec.pop("metadata", {})}
    status = spec.pop("status", {})
    container = {
        "name": "main",
        "image": spec.pop("image", "busybox"),
        "resources": {"requests": requests or {}},
        "ports": list(ports),
    }
    tree = {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": status}
    return PodView(from_tree(tree, Pod))


# -- at random, from few values, so that they meet

TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["dedicated", "sla"]),
            "value": st.sampled_from(["", "web", "5", "900"]),
            "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
        }
    ),
    max_size=2,
)
TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["dedicated", "sla", "node.kubernetes.io/unschedulable"]),
            "operator": st.sampled_from(["Equal", "Exists", "Lt", "Gt"]),
            "value": st.sampled_from(["", "web", "100"]),
            "effect": st.sampled_from(["", "NoSchedule", "PreferNoSchedule"]),
        }
    ),
    max_size=2,
)
LABELS = st.dictionaries(
    st.sampled_from(["zone", "disk"]), st.sampled_from(["a", "b", "7", "12"]), max_size=2
)
AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "100m", "1", "2500m"]),
        "memory": st.sampled_from(["0", "64Mi", "1Gi", "3Gi"]),
        "ephemeral-storage": st.sampled_from(["1Gi", "20Gi"]),
        GPU: st.sampled_from(["1", "2"]),
    },
)
ALLOCATABLE = st.fixed_dictionaries(
    {"pods": st.sampled_from(["1", "3", "110"])},
    optional={
        "cpu": st.sampled_from(["1", "3", "8"]),
        "memory": st.sampled_from(["1Gi", "4Gi", "16Gi"]),
        "ephemeral-storage": st.sampled_from(["10Gi", "100Gi"]),
        GPU: st.sampled_from(["1", "4"]),
    },
)
IMAGES = st.lists(
    st.fixed_dictionaries(
        {
            "names": st.lists(
                st.sampled_from(["busybox:latest", "web:1", "reg.example:5000/big:2"]),
                min_size=1,
                max_size=2,
                unique=True,
            ),
            "sizeBytes": st.sampled_from([1 * MI, 300 * MI, 2000 * MI]),
        }
    ),
    max_size=2,
)
CONDITIONS = st.lists(
    st.sampled_from(
        [
            {"type": "Ready", "status": "True"},
            {"type": "Ready", "status": "False"},
            {"type": "net", "status": "True"},
            {"type": "net", "status": "Unknown", "reason": "TimeoutExceeded"},
        ]
    ),
    max_size=2,
    unique_by=lambda each: each["type"],
)
GATES = st.sampled_from([[], [], [{"conditionType": "net", "timeoutSeconds": 5}]])
FEATURES = st.lists(
    st.sampled_from(["VolumeBindMountOptions", "RestartAllContainersOnContainerExits", "Unheard"]),
    unique=True,
    max_size=3,
).map(sorted)
PORTS = st.lists(
    st.fixed_dictionaries(
        {
            "containerPort": st.just(80),
            "hostPort": st.sampled_from([0, 8080, 9090]),
            "hostIP": st.sampled_from(["", "10.0.0.1", "10.0.0.2"]),
            "protocol": st.sampled_from(["TCP", "UDP"]),
        }
    ),
    max_size=2,
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return node(
        name,
        allocatable=draw(ALLOCATABLE),
        labels=draw(LABELS),
        taints=draw(TAINTS),
        unschedulable=draw(st.sampled_from([False, False, True])),
        readinessGates=draw(GATES),
        status={
            "images": draw(IMAGES),
            "conditions": draw(CONDITIONS),
            "declaredFeatures": draw(FEATURES),
        },
    )


_REQUIREMENT = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["zone", "disk"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["zone", "disk"]),
            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
            "values": st.just([]),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["zone", "disk"]),
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.sampled_from([["9"], ["x"]]),
        }
    ),
)
_FIELD = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from([["n0"], ["n1"]]),
    }
)
_TERM = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(_REQUIREMENT, max_size=2),
        "matchFields": st.sampled_from([0, 0, 1]).flatmap(lambda n: st.lists(_FIELD, min_size=n, max_size=n)),
    }
)
AFFINITY = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
                {"nodeSelectorTerms": st.lists(_TERM, min_size=1, max_size=2)}
            ),
            "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
                st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": _TERM}), max_size=2
            ),
        },
    ).map(lambda inside: {"nodeAffinity": inside}),
)


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodView:
    spec: dict[str, Any] = {"tolerations": draw(TOLERATIONS), "affinity": draw(AFFINITY)}
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(LABELS)
    spec["metadata"] = {
        "ownerReferences": draw(
            st.sampled_from(
                [
                    [],
                    [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "DaemonSet",
                            "name": "d",
                            "uid": "d",
                            "controller": True,
                        }
                    ],
                ]
            )
        )
    }
    if draw(st.booleans()):
        spec["initContainers"] = [
            {
                "name": "first",
                "image": draw(st.sampled_from(["web:1", "reg.example:5000/big:2"])),
                "resources": {"requests": draw(AMOUNTS)},
                "volumeMounts": [
                    {
                        "name": "v",
                        "mountPath": "/v",
                        "bindMountOptions": draw(st.sampled_from([[], ["noexec"]])),
                    }
                ],
                **({"restartPolicy": "Always"} if draw(st.booleans()) else {}),
            }
        ]
    return pod(name, requests=draw(AMOUNTS), ports=draw(PORTS), **spec)
