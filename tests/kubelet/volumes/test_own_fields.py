"""Files that show a pod's own fields and the exclusive CPUs of its containers (`assigned.cpuset`), on a real disk."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.base.errors import WorldError
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.machine import Machine, machine

_RESOURCES = {"limits": {"cpu": "2", "memory": "64Mi"}, "requests": {"cpu": "2", "memory": "64Mi"}}


def item(path: str, resource: str = "assigned.cpuset") -> dict[str, Any]:
    return {"path": path, "resourceFieldRef": {"containerName": "c", "resource": resource}}


def info(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "containers": [{"name": "c", "image": "image", "resources": _RESOURCES}],
        "volumes": [{"name": "info", "downwardAPI": {"items": list(items)}}],
    }


def projected(*more: dict[str, Any]) -> dict[str, Any]:
    sources = [{"downwardAPI": {"items": [item("cpus/assigned")]}}, *more]
    return {"volumes": [{"name": "all", "projected": {"sources": sources, "defaultMode": 0o440}}]}


async def mounted(node: Machine, spec: dict[str, Any]) -> Pod:
    pod = await node.pod(spec)
    await node.services.volumes.mount(pod)
    return pod


def test_the_file_shows_exclusive_cpus_beside_all_other_values(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            node.cpus["c"] = "1-2,11"
            name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
            pod = await mounted(node, info(item("assigned"), item("limit", "limits.cpu"), name))
            at = node.volume(pod, "downward-api", "info")
            shown = {each: (at / each).read_text() for each in ("assigned", "limit", "name")}
            assert shown == {"assigned": "1-2,11", "limit": "2", "name": "p"}

    run_virtual(main)


def test_without_exclusive_cpus_the_file_is_there_and_empty(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            pod = await mounted(node, info(item("assigned")))
            assert (node.volume(pod, "downward-api", "info") / "assigned").read_bytes() == b""

    run_virtual(main)


def test_a_new_set_is_written_as_one_swap_of_the_data_link(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            node.cpus["c"] = "1-2,11-12"
            pod = await mounted(node, info(item("assigned")))
            at = node.volume(pod, "downward-api", "info")
            before, old = os.readlink(at / "..data"), (at / "assigned").open()
            node.cpus["c"] = "1-2,11"
            await clock.sleep(1)
            await node.services.volumes.refresh_own_fields(pod)
            assert (at / "assigned").read_text() == "1-2,11"
            assert os.readlink(at / "..data") != before
            assert os.readlink(at / "assigned") == "..data/assigned"
            # Whoever had the old file open reads the old set to its end, not a mixture.
            with old:
                assert old.read() == "1-2,11-12"
            link = (at / "..data").lstat().st_mtime_ns
            await node.services.volumes.refresh_own_fields(pod)
            assert (at / "..data").lstat().st_mtime_ns == link

    run_virtual(main)


#: Of inotify(7): something was made, or was renamed to.
_IN_MOVED_TO, _IN_CREATE, _IN_NONBLOCK = 0x80, 0x100, 0o4000


def test_a_program_that_watches_the_volume_hears_of_the_swap(tmp_path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            node.cpus["c"] = "1-2"
            pod = await mounted(node, info(item("assigned")))
            at = node.volume(pod, "downward-api", "info")
            watch = libc.inotify_init1(_IN_NONBLOCK)
            try:
                assert libc.inotify_add_watch(watch, str(at).encode(), _IN_MOVED_TO | _IN_CREATE) >= 0
                node.cpus["c"] = "1"
                await node.services.volumes.refresh_own_fields(pod)
                events, names = os.read(watch, 1 << 16), []
                while events:
                    _, mask, _, length = struct.unpack_from("iIII", events)
                    names.append((mask, events[16 : 16 + length].rstrip(b"\0").decode()))
                    events = events[16 + length :]
                assert names[-1] == (_IN_MOVED_TO, "..data")
                assert (at / "assigned").read_text() == "1"
            finally:
                os.close(watch)

    run_virtual(main)


def test_a_projected_volume_gets_the_new_set_although_its_config_map_is_gone(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            metadata = ObjectMeta(name="cm", namespace="default")
            await node.client.create(ConfigMap(metadata=metadata, data={"colour": "blue"}))
            node.cpus["c"] = "2-3"
            pod = await mounted(node, projected({"configMap": {"name": "cm"}}))
            at = node.volume(pod, "projected", "all")
            await node.client.delete(ConfigMap, "cm", "default")
            await clock.sleep(61)
            node.cpus["c"] = "2"
            await node.services.volumes.refresh_own_fields(pod)
            assert (at / "cpus" / "assigned").read_text() == "2"
            assert (at / "colour").read_text() == "blue"
            assert (at / "colour").stat().st_mode & 0o777 == 0o440

    run_virtual(main)


def test_the_next_kubelet_writes_into_volumes_it_has_not_mounted_itself(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            node.cpus["c"] = "2-3"
            pod = await mounted(node, info(item("assigned")))
            node.cpus["c"] = "2"
            await node.another().volumes.refresh_own_fields(pod)
            assert (node.volume(pod, "downward-api", "info") / "assigned").read_text() == "2"

    run_virtual(main)


def test_a_volume_that_is_not_mounted_yet_is_left_to_its_mount(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            node.cpus["c"] = "2"
            pod = await node.pod(info(item("assigned")))
            await node.services.volumes.refresh_own_fields(pod)
            at = node.volume(pod, "downward-api", "info")
            assert not at.exists()
            await node.services.volumes.mount(pod)
            assert (at / "assigned").read_text() == "2"

    run_virtual(main)


@pytest.mark.parametrize("spec", [info(item("assigned")), projected()])
def test_a_kubelet_before_137_cannot_mount_the_volume(tmp_path: Path, spec: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path, "1.36") as node:
            with pytest.raises(WorldError) as caught:
                await mounted(node, spec)
            assert "unsupported container resource : assigned.cpuset" in str(caught.value)

    run_virtual(main)
