"""Where pods with volumes can go, and why not elsewhere. Nodes a0, a1 are in zone a, b0 in zone b."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.meta import KubeObject
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Code, Status
from tests.scheduler.cache.objects import node, pod
from tests.scheduler.plugins.preempting import Cluster
from tests.scheduler.plugins.storage import (
    DRIVER,
    ZONE,
    attachment,
    capacity,
    claim,
    csi_node,
    driver,
    only_in,
    storage_class,
    using,
    volume,
)

A0, A1, B0 = "a0", "a1", "b0"
NAMES = {"VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions"}


def cluster(*objects: KubeObject) -> Cluster:
    found = Cluster(objects)
    for name in (A0, A1, B0):
        found.table.upsert_node(node(name, labels={ZONE: name[0]}))
    return found


def fitting(found: Cluster, view: PodView) -> list[str]:
    said = found.classes.explain(view)
    if said.before is None:
        check_forms(found, view)
    return sorted(said.fitting)


def check_forms(found: Cluster, view: PodView) -> None:
    """A plugin says the same of a column of nodes and of each."""
    rows = found.table.rows()
    cycle = found.classes.cycle(view)
    plugin: Any
    for plugin in found.plugins:
        if plugin.name not in NAMES or plugin.name in cycle.skipped_filters:
            continue
        answer = plugin.filter_rows(cycle, found.table, rows)
        which = [-1] * len(rows) if answer is None else answer.which.tolist()
        column = [SUCCESS if index < 0 else answer.reasons[index] for index in which]
        assert column == [plugin.filter(cycle, view, found.table.view(row)) for row in rows.tolist()]


def reasons(found: Cluster, view: PodView) -> dict[str, Status]:
    check_forms(found, view)
    return dict(found.classes.explain(view).rejected)


def before(found: Cluster, view: PodView) -> Status:
    """Why the pod is rejected as such."""
    said = found.classes.explain(view).before
    assert said is not None
    return said


MADE: dict[str, Any] = {"provisioner": DRIVER}
ZONE_A = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
EPHEMERAL = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}


class TestClaims:
    @pytest.mark.parametrize(
        ("objects", "view", "plugin", "reason"),
        [
            ([], using("p", "c"), "VolumeRestrictions", 'persistentvolumeclaim "c" not found'),
            (
                [],
                pod("p", volumes=[EPHEMERAL]),
                "VolumeBinding",
                'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"',
            ),
            (
                [claim("p-tmp", bound="v"), volume("v")],
                pod("p", volumes=[EPHEMERAL]),
                "VolumeBinding",
                "PVC default/p-tmp was not created for pod default/p (pod is not owner)",
            ),
            (
                [claim("c", bound="v", status={"phase": "Lost"}), volume("v")],
                using("p", "c"),
                "VolumeBinding",
                'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            ),
            (
                [claim("c", bound="v", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), volume("v")],
                using("p", "c"),
                "VolumeBinding",
                'persistentvolumeclaim "c" is being deleted',
            ),
            (
                [claim("c"), storage_class(waits=False)],
                using("p", "c"),
                "VolumeBinding",
                "pod has unbound immediate PersistentVolumeClaims",
            ),
            (
                [claim("c", class_=None)],
                using("p", "c"),
                "VolumeBinding",
                "pod has unbound immediate PersistentVolumeClaims",
            ),
            (
                [claim("c", bound="v")],
                using("p", "c"),
                "VolumeZone",
                'persistentvolume "v" not found',
            ),
        ],
        ids=["missing", "ephemeral", "stranger", "lost", "leaving", "immediate", "classless", "no-volume"],
    )
    def test_a_pod_whose_claims_are_not_in_order_goes_nowhere(
        self, objects: list[KubeObject], view: PodView, plugin: str, reason: str
    ) -> None:
        assert before(cluster(*objects), view) == Status(Code.UNRESOLVABLE, (reason,), plugin)

    def test_a_pod_that_was_rejected_fits_once_its_claim_is_there(self) -> None:
        found = cluster(volume("v", **only_in("b")))
        view = using("p", "c")
        assert not fitting(found, view)
        found.listers.put(claim("c", bound="v"))
        assert fitting(found, view) == [B0]

    def test_a_volume_made_for_the_pod_alone_is_used(self) -> None:
        own = claim("p-tmp", bound="v", metadata={"ownerReferences": [OWNER]})
        assert fitting(cluster(own, volume("v", **only_in("b"))), pod("p", volumes=[EPHEMERAL])) == [B0]

    def test_pods_without_claims_are_not_asked_about(self) -> None:
        found = cluster()
        view = pod("p", volumes=[{"name": "tmp", "emptyDir": {}}])
        skipped = found.classes.cycle(view).skipped_filters
        assert skipped >= NAMES
        volatile: list[Any] = [each for each in found.plugins if each.name in NAMES]
        assert not any(each.concerns(view) for each in volatile)


class TestBoundClaims:
    def test_a_pod_goes_where_its_volume_can_be_reached(self) -> None:
        found = cluster(claim("c", bound="v"), volume("v", phase="Bound", **only_in("b")))
        view = using("p", "c")
        assert fitting(found, view) == [B0]
        text = "node(s) didn't match PersistentVolume's node affinity"
        assert reasons(found, view)[A0] == Status(Code.UNRESOLVABLE, (text,), "VolumeBinding")

    def test_the_labels_of_a_volume_say_where_it_is(self) -> None:
        found = cluster(claim("c", bound="v"), volume("v", labels={ZONE: "b__c"}))
        found.table.upsert_node(node("plain"))
        view = using("p", "c")
        assert fitting(found, view) == [B0, "plain"]
        status = Status(Code.UNRESOLVABLE, ("node(s) had no available volume zone",), "VolumeZone")
        assert reasons(found, view) == {A0: status, A1: status}

    def test_an_old_label_of_a_volume_matches_a_new_one_of_a_node(self) -> None:
        old = {"failure-domain.beta.kubernetes.io/zone": "a"}
        assert fitting(cluster(claim("c", bound="v"), volume("v", labels=old)), using("p", "c")) == [A0, A1]

    def test_a_label_that_says_nothing_is_ignored(self) -> None:
        found = cluster(claim("c", bound="v"), volume("v", labels={ZONE: "a__"}))
        assert fitting(found, using("p", "c")) == [A0, A1, B0]


class TestClaimsThatWait:
    def test_free_volumes_are_matched_where_they_can_be_reached(self) -> None:
        found = cluster(storage_class(), claim("c"), volume("v", **only_in("b")))
        view = using("p", "c")
        assert fitting(found, view) == [B0]
        text = "node(s) didn't find available persistent volumes to bind"
        assert reasons(found, view)[A0] == Status(Code.UNRESOLVABLE, (text,), "VolumeBinding")

    @pytest.mark.parametrize(
        ("wanted", "offered"),
        [
            ({"size": "20Gi"}, {}),
            ({"class_": "fast"}, {}),
            ({"spec": {"accessModes": ["ReadWriteMany"]}}, {}),
            ({"spec": {"volumeMode": "Block"}}, {}),
            ({"spec": {"selector": {"matchLabels": {"a": "b"}}}}, {"labels": {"a": "c"}}),
            ({"spec": {"volumeAttributesClassName": "gold"}}, {}),
            ({}, {"phase": "Released"}),
            ({}, {"claimRef": {"namespace": "default", "name": "other"}}),
            ({}, {"claimRef": {"namespace": "default", "name": "c", "uid": "another"}}),
        ],
        ids=["size", "class", "modes", "block", "selector", "attributes", "phase", "reserved", "namesake"],
    )
    def test_a_volume_that_does_not_match_is_not_used(
        self, wanted: dict[str, Any], offered: dict[str, Any]
    ) -> None:
        found = cluster(storage_class(), storage_class("fast"), claim("c", **wanted), volume("v", **offered))
        assert fitting(found, using("p", "c")) == []

    def test_a_volume_reserved_for_the_claim_is_used_whatever_else_is_free(self) -> None:
        mine = volume("mine", "90Gi", claimRef={"namespace": "default", "name": "c"}, **only_in("b"))
        found = cluster(storage_class(), claim("c"), volume("free"), mine)
        assert fitting(found, using("p", "c")) == [B0]

    def test_two_claims_of_a_pod_need_two_volumes(self) -> None:
        objects = [storage_class(), claim("c"), claim("d"), volume("v"), volume("w", **only_in("b"))]
        assert fitting(cluster(*objects), using("p", "c", "d")) == [B0]

    def test_volumes_that_can_be_made_need_not_be_there(self) -> None:
        found = cluster(storage_class(**MADE), claim("c"))
        assert fitting(found, using("p", "c")) == [A0, A1, B0]

    def test_volumes_are_made_where_their_class_allows(self) -> None:
        found = cluster(storage_class(allowedTopologies=ZONE_A, **MADE), claim("c"))
        assert fitting(found, using("p", "c")) == [A0, A1]

    def test_volumes_are_made_where_there_is_space(self) -> None:
        counted = driver(storageCapacity=True)
        objects = [storage_class(**MADE), claim("c"), capacity("9Gi", "a"), capacity("1Gi", "b")]
        view = using("p", "c")
        assert fitting(cluster(*objects), view) == [A0, A1, B0]
        found = cluster(counted, *objects)
        assert fitting(found, view) == [A0, A1]
        text = "node(s) did not have enough free storage"
        assert reasons(found, view)[B0] == Status(Code.UNRESOLVABLE, (text,), "VolumeBinding")

    def test_a_claim_that_is_being_made_for_a_node_stays_with_it(self) -> None:
        selected = claim("c", annotations={"volume.kubernetes.io/selected-node": A1})
        assert fitting(cluster(storage_class(**MADE), selected), using("p", "c")) == [A1]

    def test_what_one_pod_was_promised_the_next_does_not_get(self) -> None:
        found = cluster(storage_class(), claim("c"), claim("d"), volume("v", **only_in("b")))
        first, second = using("p", "c"), using("q", "d")
        binding: Any = next(each for each in found.plugins if each.name == "VolumeBinding")
        cycle = found.classes.cycle(first)
        assert binding.reserve(cycle, first, B0).is_success
        assert fitting(found, second) == []
        binding.unreserve(cycle, first, B0)
        assert fitting(found, second) == [B0]

    def test_the_api_knows_better_than_an_assumption(self) -> None:
        found = cluster(storage_class(), claim("c"), claim("d"), volume("v"))
        first, second = using("p", "c"), using("q", "d")
        binding: Any = next(each for each in found.plugins if each.name == "VolumeBinding")
        assert binding.reserve(found.classes.cycle(first), first, B0).is_success
        assert fitting(found, second) == []
        newer = volume("v")
        newer.metadata.resource_version = "2"
        found.listers.put(newer)
        assert fitting(found, second) == [A0, A1, B0]


class TestLimits:
    def objects(self, *more: KubeObject) -> list[KubeObject]:
        found: list[KubeObject] = [csi_node(A0, 2), csi_node(A1, None), *more]
        for name in ("c", "d", "e"):
            found += [claim(name, bound=f"v-{name}"), volume(f"v-{name}", handle=f"h-{name}")]
        return found

    def test_a_node_takes_no_more_volumes_than_it_says(self) -> None:
        found = cluster(*self.objects())
        found.table.assume(using("old", "c", "d"), A0)
        view = using("p", "e")
        status = Status(Code.UNSCHEDULABLE, ("node(s) exceed max volume count",), "NodeVolumeLimits")
        assert reasons(found, view) == {A0: status}

    def test_a_volume_that_is_there_already_counts_once(self) -> None:
        found = cluster(*self.objects())
        found.table.assume(using("old", "c", "d"), A0)
        assert fitting(found, using("p", "c", "d")) == [A0, A1, B0]

    def test_what_is_attached_counts_though_no_pod_uses_it(self) -> None:
        found = cluster(*self.objects(attachment(A0, "v-c"), attachment(A0, "v-d")))
        assert fitting(found, using("p", "e")) == [A1, B0]

    def test_volumes_yet_to_be_made_count_by_their_class(self) -> None:
        waiting = [storage_class(**MADE), claim("x"), claim("y")]
        found = cluster(*self.objects(*waiting))
        found.table.assume(using("old", "c", "x"), A0)
        assert fitting(found, using("p", "y")) == [A1, B0]

    def test_a_driver_may_insist_on_being_there(self) -> None:
        found = cluster(*self.objects(driver(preventPodSchedulingIfMissing=True)))
        view = using("p", "c")
        text = f"{DRIVER} CSI driver is not installed on the node"
        assert reasons(found, view) == {B0: Status(Code.UNSCHEDULABLE, (text,), "NodeVolumeLimits")}


class TestRestrictions:
    def test_a_claim_for_one_pod_is_not_given_to_a_second(self) -> None:
        once = claim("c", bound="v", spec={"accessModes": ["ReadWriteOncePod"]})
        found = cluster(once, volume("v"))
        view = using("p", "c")
        assert fitting(found, view) == [A0, A1, B0]
        found.table.assume(using("old", "c"), A0)
        text = (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
            "in-use by another pod"
        )
        status = Status(Code.UNSCHEDULABLE, (text,), "VolumeRestrictions")
        assert reasons(found, view) == dict.fromkeys((A0, A1, B0), status)
        found.table.remove_pod("old")
        assert fitting(found, view) == [A0, A1, B0]

    def test_preemption_takes_the_claim_from_whoever_has_it(self) -> None:
        once = claim("c", bound="v", spec={"accessModes": ["ReadWriteOncePod"]})
        found = cluster(once, volume("v"))
        found.run("bystander", A0, "1")
        found.table.add_pod(using("old", "c", nodeName=A1))
        made = found.make_room(using("p", "c", priority=9))
        assert made.node == A1
        assert "preempting 1 victims" in made.status.message

    @pytest.mark.parametrize(
        ("mine", "theirs", "conflicts"),
        [
            ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "x"}}, True),
            ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "y"}}, False),
            (
                {"gcePersistentDisk": {"pdName": "x", "readOnly": True}},
                {"gcePersistentDisk": {"pdName": "x", "readOnly": True}},
                False,
            ),
            (
                {"awsElasticBlockStore": {"volumeID": "x", "readOnly": True}},
                {"awsElasticBlockStore": {"volumeID": "x", "readOnly": True}},
                True,
            ),
            (
                {"iscsi": {"iqn": "x", "targetPortal": "t", "lun": 0}},
                {"iscsi": {"iqn": "x", "targetPortal": "u", "lun": 1, "readOnly": True}},
                True,
            ),
            (
                {"rbd": {"monitors": ["m", "n"], "image": "i", "pool": "p"}},
                {"rbd": {"monitors": ["n", "o"], "image": "i", "pool": "p"}},
                True,
            ),
            (
                {"rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
                {"rbd": {"monitors": ["n"], "image": "i", "pool": "p"}},
                False,
            ),
        ],
    )
    def test_a_disk_that_takes_one_pod_is_not_mounted_twice(
        self, mine: dict[str, Any], theirs: dict[str, Any], conflicts: bool
    ) -> None:
        found = cluster()
        found.table.assume(pod("old", volumes=[{"name": "d", **theirs}]), A0)
        view = pod("p", volumes=[{"name": "d", **mine}])
        status = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",), "VolumeRestrictions")
        assert reasons(found, view) == ({A0: status} if conflicts else {})
