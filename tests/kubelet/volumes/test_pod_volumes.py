"""Volumes of pods against an API server, with a node's own rights and nothing more."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.meta import ObjectMeta
from nodeward.base.errors import WorldError
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.machine import Machine, machine


def named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


def volumes(*given: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": list(given)}


async def refused(node: Machine, spec: dict[str, Any], name: str = "bad") -> str:
    """Why the volumes of a pod cannot be made."""
    pod = await node.pod(spec, name=name)
    with pytest.raises(WorldError) as caught:
        await node.services.volumes.mount(pod)
    return str(caught.value)


def test_config_maps_and_secrets_are_files(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(
                ConfigMap(metadata=named("cm"), data={"a": "one"}, binary_data={"b": b"\x00\xff"})
            )
            await node.client.create(Secret(metadata=named("s"), data={"k": b"hush", "other": b"x"}))
            items = [{"key": "k", "path": "deep/key", "mode": 0o400}]
            pod = await node.pod(
                volumes(
                    {"name": "cm", "configMap": {"name": "cm"}},
                    {"name": "s", "secret": {"secretName": "s", "items": items, "defaultMode": 0o600}},
                )
            )
            logs = await node.services.volumes.mount(pod)
            assert Path(logs) == tmp_path / "logs" / "pods" / f"default_p_{pod.metadata.uid}"
            config = node.volume(pod, "configmap", "cm")
            assert (config / "a").read_text() == "one"
            assert (config / "b").read_bytes() == b"\x00\xff"
            secret = node.volume(pod, "secret", "s")
            assert sorted(name for name in os.listdir(secret) if not name.startswith("..")) == ["deep"]
            assert (secret / "deep" / "key").read_bytes() == b"hush"
            assert stat.S_IMODE((secret / "deep" / "key").stat().st_mode) == 0o400

    run_virtual(main)


def test_a_changed_config_map_reaches_the_files_within_two_minutes(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            made = await node.client.create(ConfigMap(metadata=named("cm"), data={"a": "one", "b": "x"}))
            pod = await node.pod(volumes({"name": "v", "configMap": {"name": "cm"}}))
            await node.services.volumes.mount(pod)
            made.data = {"a": "two"}
            await node.client.update(made)
            await node.services.volumes.refresh(pod)
            at = node.volume(pod, "configmap", "v")
            assert (at / "a").read_text() == "one"
            await clock.sleep(61)
            await node.services.volumes.refresh(pod)
            assert (at / "a").read_text() == "two"
            assert not (at / "b").exists()

    run_virtual(main)


def test_files_stay_as_they_were_when_their_config_map_is_deleted(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"a": "one"}))
            pod = await node.pod(volumes({"name": "v", "configMap": {"name": "cm"}}))
            await node.services.volumes.mount(pod)
            await node.client.delete(ConfigMap, "cm", "default")
            await clock.sleep(61)
            with pytest.raises(WorldError):
                await node.services.volumes.refresh(pod)
            assert (node.volume(pod, "configmap", "v") / "a").read_text() == "one"

    run_virtual(main)


def test_what_is_missing_is_told_as_users_know_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"a": "one"}))
            text = await refused(node, volumes({"name": "v", "configMap": {"name": "no"}}))
            assert text == 'MountVolume.SetUp failed for volume "v" : configmap "no" not found'
            text = await refused(node, volumes({"name": "v", "secret": {"secretName": "no"}}), "bad2")
            assert text == 'MountVolume.SetUp failed for volume "v" : secret "no" not found'
            items = [{"key": "z", "path": "z"}]
            spec = volumes({"name": "v", "configMap": {"name": "cm", "items": items}})
            text = await refused(node, spec, "bad3")
            assert text.endswith(": configmap references non-existent config key: z")
            spec = volumes({"name": "v", "csi": {"driver": "disks.example.com"}})
            text = await refused(node, spec, "bad4")
            assert "driver disks.example.com not found in the list of registered CSI drivers" in text

    run_virtual(main)


def test_what_is_optional_may_be_missing_and_comes_later(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            pod = await node.pod(volumes({"name": "v", "configMap": {"name": "later", "optional": True}}))
            await node.services.volumes.mount(pod)
            at = node.volume(pod, "configmap", "v")
            assert [name for name in os.listdir(at) if not name.startswith("..")] == []
            await node.client.create(ConfigMap(metadata=named("later"), data={"a": "one"}))
            await node.services.volumes.refresh(pod)
            assert (at / "a").read_text() == "one"

    run_virtual(main)


def test_fields_of_the_pod_are_files_that_follow_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            items = [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "tier", "fieldRef": {"fieldPath": "metadata.labels['tier']"}},
                {
                    "path": "cpu",
                    "resourceFieldRef": {
                        "containerName": "c",
                        "resource": "limits.cpu",
                        "divisor": "1m",
                    },
                },
            ]
            pod = await node.pod(
                volumes({"name": "v", "downwardAPI": {"items": items}}),
                labels={"tier": "front", "app": "ab"},
            )
            await node.services.volumes.mount(pod)
            at = node.volume(pod, "downward-api", "v")
            assert (at / "labels").read_text() == 'app="ab"\ntier="front"'
            assert (at / "tier").read_text() == "front"
            # Nobody limited it: what the node has.
            assert (at / "cpu").read_text() == "4000"
            changed = codec.from_tree(codec.to_tree(pod), Pod)
            changed.metadata.labels = {"tier": "back"}
            await node.services.volumes.refresh(changed)
            assert (at / "labels").read_text() == 'tier="back"'

    run_virtual(main)


def test_a_projected_volume_holds_several_sources_and_a_token_that_is_renewed(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"ca.crt": "cert"}))
            sources = [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {"configMap": {"name": "cm"}},
                {
                    "downwardAPI": {
                        "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                    }
                },
            ]
            pod = await node.pod(volumes({"name": "v", "projected": {"sources": sources}}))
            await node.services.volumes.mount(pod)
            at = node.volume(pod, "projected", "v")
            first = (at / "token").read_text()
            assert first.count(".") == 2
            assert (at / "ca.crt").read_text() == "cert"
            assert (at / "namespace").read_text() == "default"
            await clock.sleep(40 * 60)
            await node.services.volumes.refresh(pod)
            assert (at / "token").read_text() == first
            await clock.sleep(9 * 60)
            await node.services.volumes.refresh(pod)
            assert (at / "token").read_text() != first

    run_virtual(main)


def test_a_token_that_cannot_be_renewed_is_used_until_it_has_expired(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]
            pod = await node.pod(volumes({"name": "v", "projected": {"sources": sources}}))
            await node.services.volumes.mount(pod)
            first = (node.volume(pod, "projected", "v") / "token").read_text()
            await node.client.delete(Pod, "p", "default", grace_period=0)
            await clock.sleep(50 * 60)
            await node.services.volumes.refresh(pod)
            assert (node.volume(pod, "projected", "v") / "token").read_text() == first
            await clock.sleep(11 * 60)
            with pytest.raises(WorldError, match="token of default/default expired and refresh failed"):
                await node.services.volumes.refresh(pod)

    run_virtual(main)


def test_trust_bundles_are_refused_by_name(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            source = {"clusterTrustBundle": {"name": "b", "path": "b.pem"}}
            pod = Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u1"))
            spec = {"containers": [], **volumes({"name": "v", "projected": {"sources": [source]}})}
            pod.spec = codec.from_tree({"spec": spec}, Pod).spec
            with pytest.raises(WorldError, match="ClusterTrustBundle projections are not supported"):
                await node.services.volumes.mount(pod)

    run_virtual(main)


def test_an_empty_directory_is_open_to_all_and_outlives_the_kubelet(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            pod = await node.pod(volumes({"name": "v", "emptyDir": {"medium": "Memory"}}))
            await node.services.volumes.mount(pod)
            at = node.volume(pod, "empty-dir", "v")
            assert stat.S_IMODE(at.stat().st_mode) == 0o777
            (at / "kept").write_text("x")
            await node.services.volumes.mount(pod)
            assert (at / "kept").read_text() == "x"
            await node.services.volumes.unmount(pod.metadata.uid)
            assert not (tmp_path / "pods" / pod.metadata.uid).exists()
            logs = tmp_path / "logs" / "pods" / f"default_p_{pod.metadata.uid}"
            assert logs.is_dir()
            await node.services.volumes.forget(pod.metadata.uid)
            assert not logs.exists()

    run_virtual(main)


def test_taking_a_volume_away_leaves_what_it_pointed_to(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        host = tmp_path / "host"
        host.mkdir()
        (host / "mine").write_text("x")
        async with machine(clock, tmp_path / "root") as node:
            pod = await node.pod(
                volumes(
                    {"name": "h", "hostPath": {"path": str(host), "type": "Directory"}},
                    {"name": "e", "emptyDir": {}},
                )
            )
            await node.services.volumes.mount(pod)
            (node.volume(pod, "empty-dir", "e") / "link").symlink_to(host)
            await node.services.volumes.unmount(pod.metadata.uid)
            assert (host / "mine").read_text() == "x"

    run_virtual(main)


async def claimed(node: Machine, source: dict[str, Any]) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    volume = codec.from_tree({"metadata": {"name": "pv"}, "spec": spec}, PersistentVolume)
    claim = codec.from_tree(
        {
            "metadata": {"name": "claim", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv",
            },
        },
        PersistentVolumeClaim,
    )
    made = await node.client.create(claim)
    tree = codec.to_tree(volume)
    tree["spec"]["claimRef"] = {"name": "claim", "namespace": "default", "uid": made.metadata.uid}
    await node.client.create(codec.from_tree(tree, PersistentVolume))
    made.status.phase = "Bound"
    await node.client.update(made, subresource="status")


def test_a_bound_claim_leads_to_its_volume_on_the_node(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path / "root") as node:
            await claimed(node, {"hostPath": {"path": str(tmp_path / "data"), "type": "DirectoryOrCreate"}})
            container = {
                "name": "c",
                "image": "image",
                "volumeMounts": [{"name": "v", "mountPath": "/data", "subPath": "mine"}],
            }
            pod = await node.pod(
                {
                    "containers": [container],
                    **volumes({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}),
                }
            )
            await node.services.volumes.mount(pod)
            request = await node.request(pod)
            (mount,) = request.mounts
            assert (mount.source, mount.target) == (str(tmp_path / "data" / "mine"), "/data")
            assert (tmp_path / "data" / "mine").is_dir()

    run_virtual(main)


def test_claims_that_cannot_be_used_are_told_with_the_reason(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await claimed(node, {"csi": {"driver": "disks.example.com", "volumeHandle": "h"}})
            text = await refused(
                node, volumes({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}})
            )
            assert "driver disks.example.com not found" in text
            text = await refused(
                node, volumes({"name": "v", "persistentVolumeClaim": {"claimName": "no"}}), "bad2"
            )
            assert "error processing PVC default/no: failed to fetch PVC from API server" in text

    run_virtual(main)
