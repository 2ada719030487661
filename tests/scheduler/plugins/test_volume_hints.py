"""Which changes of storage wake a pod that waits for it, and which leave it alone."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.pod import PodView
from tests.scheduler.cache.objects import pod
from tests.scheduler.plugins import profile
from tests.scheduler.plugins.storage import (
    ZONE,
    attachment,
    capacity,
    claim,
    csi_node,
    driver,
    storage_class,
    using,
    volume,
)

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
PLUGINS: dict[str, Any] = {plugin.name: plugin for plugin in profile.plugins()}
PLAIN, MINE = pod("p"), using("p", "c")
EPHEMERAL = pod("p", volumes=[{"name": "t", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
DISK = [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]
CLAIM, VOLUME, CLASS = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
)
GONE, POD = Action.DELETE, Resource.ASSIGNED_POD
OTHER = Action.UPDATE_OTHER


def elsewhere(view: PodView) -> PodView:
    view.pod.metadata.namespace = "elsewhere"
    return view


@pytest.mark.parametrize(
    ("plugin", "resource", "action", "view", "old", "new", "hint"),
    [
        ("VolumeBinding", CLAIM, Action.ADD, MINE, None, claim("c"), QUEUE),
        ("VolumeBinding", CLAIM, OTHER, MINE, claim("c"), claim("c", bound="v"), QUEUE),
        ("VolumeBinding", CLAIM, Action.ADD, MINE, None, claim("d"), SKIP),
        ("VolumeBinding", CLAIM, Action.ADD, EPHEMERAL, None, claim("p-t"), QUEUE),
        (
            "VolumeBinding",
            CLAIM,
            Action.ADD,
            MINE,
            None,
            claim("c", metadata={"namespace": "elsewhere"}),
            SKIP,
        ),
        ("VolumeBinding", VOLUME, Action.ADD, MINE, None, volume("v"), QUEUE),
        ("VolumeBinding", CLASS, Action.ADD, MINE, None, storage_class(), QUEUE),
        ("VolumeBinding", CLASS, OTHER, MINE, storage_class(), storage_class(), SKIP),
        (
            "VolumeBinding",
            CLASS,
            OTHER,
            MINE,
            storage_class(),
            storage_class(allowedTopologies=ZONES),
            QUEUE,
        ),
        (
            "VolumeBinding",
            CSIDriver,
            OTHER,
            MINE,
            driver(storageCapacity=True),
            driver(storageCapacity=False),
            QUEUE,
        ),
        ("VolumeBinding", CSIDriver, OTHER, MINE, driver(), driver(storageCapacity=True), SKIP),
        (
            "VolumeBinding",
            CSIStorageCapacity,
            Action.ADD,
            MINE,
            None,
            capacity("1Gi", "a"),
            QUEUE,
        ),
        (
            "VolumeBinding",
            CSIStorageCapacity,
            OTHER,
            MINE,
            capacity("1Gi", "a"),
            capacity("2Gi", "a"),
            QUEUE,
        ),
        (
            "VolumeBinding",
            CSIStorageCapacity,
            OTHER,
            MINE,
            capacity("2Gi", "a"),
            capacity("1Gi", "a"),
            SKIP,
        ),
        ("VolumeZone", CLASS, Action.ADD, MINE, None, storage_class(), QUEUE),
        ("VolumeZone", CLASS, Action.ADD, MINE, None, storage_class(waits=False), SKIP),
        ("VolumeZone", CLAIM, Action.ADD, MINE, None, claim("c"), QUEUE),
        ("VolumeZone", CLAIM, Action.ADD, EPHEMERAL, None, claim("p-t"), SKIP),
        ("VolumeZone", VOLUME, Action.ADD, MINE, None, volume("v"), QUEUE),
        ("VolumeZone", VOLUME, OTHER, MINE, volume("v"), volume("v", labels={ZONE: "a"}), QUEUE),
        ("VolumeZone", VOLUME, OTHER, MINE, volume("v"), volume("v", labels={"x": "y"}), SKIP),
        ("NodeVolumeLimits", CSINode, Action.ADD, MINE, None, csi_node("n", 1), QUEUE),
        ("NodeVolumeLimits", CSINode, OTHER, MINE, csi_node("n", 1), csi_node("n", 2), QUEUE),
        ("NodeVolumeLimits", CSINode, OTHER, MINE, csi_node("n", 2), csi_node("n", 1), SKIP),
        ("NodeVolumeLimits", POD, GONE, MINE, using("o", "x", nodeName="n").pod, None, QUEUE),
        ("NodeVolumeLimits", POD, GONE, MINE, using("o", "x").pod, None, SKIP),
        ("NodeVolumeLimits", POD, GONE, MINE, pod("o", nodeName="n").pod, None, SKIP),
        ("NodeVolumeLimits", CLAIM, Action.ADD, MINE, None, claim("c"), QUEUE),
        ("NodeVolumeLimits", VolumeAttachment, GONE, MINE, attachment("n", "v"), None, QUEUE),
        ("NodeVolumeLimits", VolumeAttachment, GONE, PLAIN, attachment("n", "v"), None, SKIP),
        ("VolumeRestrictions", POD, GONE, MINE, using("o", "c", nodeName="n").pod, None, QUEUE),
        ("VolumeRestrictions", POD, GONE, MINE, using("o", "d", nodeName="n").pod, None, SKIP),
        (
            "VolumeRestrictions",
            POD,
            GONE,
            MINE,
            elsewhere(using("o", "c", nodeName="n")).pod,
            None,
            SKIP,
        ),
        ("VolumeRestrictions", POD, GONE, pod("p", volumes=DISK), pod("o", volumes=DISK).pod, None, QUEUE),
        ("VolumeRestrictions", CLAIM, Action.ADD, MINE, None, claim("c"), QUEUE),
        ("VolumeRestrictions", CLAIM, Action.ADD, MINE, None, claim("d"), SKIP),
    ],
)
def test_a_change_of_storage_wakes_those_it_helps(
    plugin: str, resource: Resource, action: Action, view: PodView, old: Any, new: Any, hint: QueueingHint
) -> None:
    (line,) = [
        each
        for each in PLUGINS[plugin].events_to_register()
        if each.event.covers(ClusterEvent(resource, action))
    ]
    assert (QUEUE if line.hint is None else line.hint(view, old, new)) is hint
