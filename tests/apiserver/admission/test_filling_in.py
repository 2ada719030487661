"""The small plugins that complete pods, nodes and claims."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.core_v1.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from nodeward.api.node_v1 import Overhead, Scheduling
from nodeward.api.node_v1 import RuntimeClass as Class
from nodeward.api.storage_v1 import StorageClass
from nodeward.apiserver.admission.default_storage_class import DefaultStorageClass
from nodeward.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from nodeward.apiserver.admission.extended_resource_toleration import ExtendedResourceToleration
from nodeward.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from nodeward.apiserver.admission.runtime_class import RuntimeClassPlugin, merge_tolerations
from nodeward.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from nodeward.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from tests.apiserver.admission.world import (
    admitted,
    amounts,
    asking,
    copy,
    create,
    forbidden,
    meta,
    pod,
    update,
    world,
)

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def test_a_pod_stays_five_minutes_on_a_lost_node() -> None:
    made = admitted(DefaultTolerationSeconds(world()), create(pod()))
    assert to_tree(made.spec.tolerations) == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in (NOT_READY, UNREACHABLE)
    ]


def test_what_the_pod_says_of_these_taints_stays() -> None:
    own = Toleration(key=NOT_READY, operator="Exists", effect="NoExecute", toleration_seconds=5)
    made = admitted(DefaultTolerationSeconds(world()), create(pod(tolerations=[own])))
    assert [(each.key, each.toleration_seconds) for each in made.spec.tolerations] == [
        (NOT_READY, 5),
        (UNREACHABLE, 300),
    ]
    everything = pod(tolerations=[Toleration(operator="Exists")])
    assert len(admitted(DefaultTolerationSeconds(world()), create(everything)).spec.tolerations) == 1
    other_effect = pod(tolerations=[Toleration(key=NOT_READY, operator="Exists", effect="NoSchedule")])
    assert len(admitted(DefaultTolerationSeconds(world()), create(other_effect)).spec.tolerations) == 3


def test_a_new_node_is_tainted_once() -> None:
    plugin = TaintNodesByCondition(world())
    node = admitted(plugin, create(Node(metadata=meta("n"))))
    assert to_tree(node.spec.taints) == [{"key": NOT_READY, "effect": "NoSchedule"}]
    assert len(admitted(plugin, create(node)).spec.taints) == 1
    node.spec.taints = [Taint(key=NOT_READY, effect="NoExecute")]
    assert len(admitted(plugin, create(node)).spec.taints) == 2
    assert admitted(plugin, update(Node(metadata=meta("n")), node)).spec.taints == []


def sandbox(**more: object) -> Class:
    return Class(metadata=meta("sandbox"), handler="runsc", **more)  # type: ignore[arg-type]


def test_a_runtime_class_brings_its_overhead() -> None:
    plugin = RuntimeClassPlugin(world(sandbox(overhead=Overhead(pod_fixed=amounts(cpu="100m")))))
    made = admitted(plugin, create(pod(runtime_class_name="sandbox")))
    assert made.spec.overhead == amounts(cpu="0.1")
    differs = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert forbidden(plugin, create(pod(runtime_class_name="sandbox", overhead=amounts(cpu="1")))) == differs
    assert forbidden(plugin, create(pod(overhead=amounts(cpu="1")))) == (
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    )
    assert forbidden(plugin, create(pod(runtime_class_name="gone"))) == (
        'pod rejected: RuntimeClass "gone" not found'
    )


def test_a_runtime_class_steers_its_pods() -> None:
    tolerated = Toleration(key="sandbox", operator="Exists")
    where = Scheduling(node_selector={"runtime": "runsc"}, tolerations=[tolerated])
    plugin = RuntimeClassPlugin(world(sandbox(scheduling=where)))
    narrow = Toleration(key="sandbox", operator="Equal", value="yes", effect="NoSchedule")
    made = admitted(
        plugin, create(pod(runtime_class_name="sandbox", node_selector={"zone": "a"}, tolerations=[narrow]))
    )
    assert made.spec.node_selector == {"zone": "a", "runtime": "runsc"}
    assert made.spec.tolerations == [tolerated]
    against = pod(runtime_class_name="sandbox", node_selector={"runtime": "runc"})
    assert forbidden(plugin, create(against)) == (
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = runsc; pod.spec.nodeSelector[runtime] = runc"
    )


TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["", "a", "b"]),
        operator=st.sampled_from(["Exists", "Equal", "Gt"]),
        value=st.sampled_from(["", "1"]),
        effect=st.sampled_from(["", "NoExecute"]),
        toleration_seconds=st.sampled_from([None, 1, 2]),
    ),
    max_size=4,
)


@given(TOLERATIONS, TOLERATIONS)
def test_merging_tolerations_keeps_nothing_twice_and_adds_nothing(
    first: list[Toleration], second: list[Toleration]
) -> None:
    merged = merge_tolerations(first, second)
    assert all(each in (*first, *second) for each in merged)
    assert all(each not in merged[:position] for position, each in enumerate(merged))
    assert merge_tolerations(merged, []) == merge_tolerations([], merged)


def storage_class(
    name: str, *, default: bool, born: str = "2026-01-01T00:00:00Z", grows: bool = False
) -> StorageClass:
    made = StorageClass(
        metadata=meta(name, creation_timestamp=born), provisioner="p", allow_volume_expansion=grows
    )
    if default:
        made.metadata.annotations["storageclass.kubernetes.io/is-default-class"] = "true"
    return made


def claim(size: str = "1Gi", phase: str = "Bound", class_name: str | None = None) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=meta("claim", "default"),
        spec=PersistentVolumeClaimSpec(
            resources=VolumeResourceRequirements(requests=amounts(storage=size)),
            storage_class_name=class_name,
        ),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def test_a_claim_gets_the_newest_default_class() -> None:
    env = world(
        storage_class("b-old", default=True),
        storage_class("z-new", default=True, born="2026-02-01T00:00:00Z"),
        storage_class("y-new", default=True, born="2026-02-01T00:00:00Z"),
        storage_class("newest", default=False, born="2026-03-01T00:00:00Z"),
    )
    assert admitted(DefaultStorageClass(env), create(claim())).spec.storage_class_name == "y-new"


def test_a_claim_that_wants_no_class_gets_none() -> None:
    env = world(storage_class("main", default=True))
    assert admitted(DefaultStorageClass(env), create(claim(class_name=""))).spec.storage_class_name == ""
    old_way = claim()
    old_way.metadata.annotations["volume.beta.kubernetes.io/storage-class"] = "x"
    assert admitted(DefaultStorageClass(env), create(old_way)).spec.storage_class_name is None
    assert admitted(DefaultStorageClass(world()), create(claim())).spec.storage_class_name is None


def test_volumes_and_claims_outlive_their_use() -> None:
    plugin = StorageObjectInUseProtection(world())
    made = admitted(plugin, create(claim()))
    assert made.metadata.finalizers == ["kubernetes.io/pvc-protection"]
    assert admitted(plugin, create(made)).metadata.finalizers == ["kubernetes.io/pvc-protection"]
    volume = admitted(plugin, create(PersistentVolume(metadata=meta("v"))))
    assert volume.metadata.finalizers == ["kubernetes.io/pv-protection"]
    assert admitted(plugin, create(ConfigMap(metadata=meta("c", "default")))).metadata.finalizers == []


def test_a_claim_grows_only_where_volumes_can() -> None:
    plugin = PersistentVolumeClaimResize(
        world(storage_class("grows", default=False, grows=True), storage_class("stays", default=False))
    )
    admitted(plugin, update(claim("2Gi", class_name="grows"), claim(class_name="grows")))
    admitted(plugin, update(claim("1Gi", class_name="stays"), claim("2Gi", class_name="stays")))
    refusal = (
        "only dynamically provisioned pvc can be resized and "
        "the storageclass that provisions the pvc must support resize"
    )
    for name in ("stays", "gone", ""):
        assert forbidden(plugin, update(claim("2Gi", class_name=name), claim(class_name=name))) == refusal
    unbound = claim(phase="Pending", class_name="grows")
    assert forbidden(plugin, update(claim("2Gi", class_name="grows"), unbound)) == (
        "Only bound persistent volume claims can be expanded"
    )


def test_asking_for_a_device_tolerates_its_nodes() -> None:
    plugin = ExtendedResourceToleration(world())
    greedy = asking("c", amounts(example__com_gpu="1", example__com_fpga="1", cpu="1"))
    made = admitted(plugin, create(pod(containers=[greedy])))
    expected = [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in ("example.com/fpga", "example.com/gpu")
    ]
    assert to_tree(made.spec.tolerations) == expected
    assert to_tree(admitted(plugin, create(copy(made))).spec.tolerations) == expected
