"""What CDI files give to a container, and that nothing in them is taken on trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.cdi import MOST_BYTES, CDIError, with_devices
from nodeward.kubelet.runtime.cri.container_config import container_config
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import ContainerRequest, Mount


def request(*ids: str, env: dict[str, str] | None = None, mounts: tuple[Mount, ...] = ()) -> ContainerRequest:
    return ContainerRequest(Pod(), Container(name="c"), 0, env or {}, mounts=mounts, cdi_ids=ids)


def write(directory: Path, name: str, **edits: Any) -> None:
    spec = {
        "cdiVersion": "0.8.0",
        "kind": "example.com/gpu",
        "containerEdits": {"env": ["ALL=1"]},
        "devices": [{"name": "d1", "containerEdits": edits}, {"name": "d2"}],
    }
    (directory / name).write_text(json.dumps(spec))


def test_variables_mounts_and_device_nodes_are_added(tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    lib.touch()
    write(
        tmp_path,
        "a.json",
        env=["GPU=d1", "EMPTY="],
        mounts=[{"hostPath": str(lib), "containerPath": "/lib/x", "options": ["ro", "nosuid", "bind"]}],
        deviceNodes=[{"path": "/dev/gpu0", "hostPath": "/dev/null"}, {"path": "/dev/zero"}],
    )
    made = with_devices(request("example.com/gpu=d1"), [tmp_path])
    assert made.env == {"ALL": "1", "GPU": "d1", "EMPTY": ""}
    assert made.mounts == (
        Mount(str(lib), "/lib/x", True, ("nosuid",)),
        Mount("/dev/null", "/dev/gpu0"),
        Mount("/dev/zero", "/dev/zero"),
    )


def test_what_the_pod_says_goes_before_what_a_device_says(tmp_path: Path) -> None:
    write(tmp_path, "a.json", env=["GPU=d1"], deviceNodes=[{"path": "/dev/zero"}])
    mine = Mount("/mine", "/dev/zero")
    made = with_devices(request("example.com/gpu=d1", env={"GPU": "mine"}, mounts=(mine,)), [tmp_path])
    assert (made.env["GPU"], made.mounts) == ("mine", (mine,))


def test_later_directories_win_and_broken_files_are_passed_over(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for each in (first, second):
        each.mkdir()
    write(first, "a.json", env=["GPU=first"])
    write(second, "a.json", env=["GPU=second"])
    (second / "b.json").write_text("{")
    (second / "c.json").write_bytes(b" " * (MOST_BYTES + 1))
    (second / "d.json").write_bytes(b'"\xff"')
    (second / "e.yaml").write_text("kind: x")
    made = with_devices(request("example.com/gpu=d1"), [first, tmp_path / "nowhere", second])
    assert made.env["GPU"] == "second"


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ({"deviceNodes": [{"path": "/dev/no-such-device"}]}, "/dev/no-such-device does not exist"),
        ({"mounts": [{"hostPath": "etc", "containerPath": "/x"}]}, "want absolute paths"),
    ],
)
def test_a_device_that_cannot_be_given_stops_the_container(
    tmp_path: Path, edits: dict[str, Any], text: str
) -> None:
    write(tmp_path, "a.json", **edits)
    with pytest.raises(CDIError, match=text):
        with_devices(request("example.com/gpu=d1"), [tmp_path])


def test_a_device_that_is_nowhere_described_stops_the_container(tmp_path: Path) -> None:
    with pytest.raises(
        CDIError, match=r"CDI device injection failed: unresolvable CDI devices example\.com/gpu=d9"
    ):
        with_devices(request("example.com/gpu=d9"), [tmp_path])


def test_a_container_without_devices_stays_as_it_is() -> None:
    plain = request()
    assert with_devices(plain, ["/nowhere"]) is plain


def test_cri_runtimes_are_given_the_ids() -> None:
    config = container_config(request("a/b=1", "a/b=2"), NodeSettings(), is_on_host_network=True)
    assert [each.name for each in config.CDI_devices] == ["a/b=1", "a/b=2"]
