"""Paths of the node as volumes, and paths below volumes: checked, made where that is allowed, and never outside."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nodeward.base.errors import WorldError
from nodeward.kubelet.volumes.host_path import host_path
from nodeward.kubelet.volumes.sub_paths import Escapes, resolve_sub_path


def test_a_sub_path_is_made_as_accessible_as_its_volume(tmp_path: Path) -> None:
    tmp_path.chmod(0o771)
    made = resolve_sub_path(tmp_path, "a/b")
    assert made == tmp_path.resolve() / "a" / "b"
    assert made.stat().st_mode & 0o777 == 0o771


def test_a_link_inside_a_volume_may_be_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert resolve_sub_path(tmp_path, "link/more") == tmp_path.resolve() / "real" / "more"


@pytest.mark.parametrize("target", ["/etc", "../..", "/"])
def test_a_link_out_of_a_volume_is_refused(tmp_path: Path, target: str) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "link").symlink_to(target)
    with pytest.raises(Escapes):
        resolve_sub_path(volume, "link/made-by-nobody")
    assert [each.name for each in tmp_path.iterdir()] == ["volume"]


@pytest.mark.parametrize("path", ["/etc", "..", "a/../../b"])
def test_a_sub_path_with_steps_back_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Escapes):
        resolve_sub_path(tmp_path, path)


def test_a_volume_beside_another_with_a_longer_name_is_outside(tmp_path: Path) -> None:
    (tmp_path / "vol").mkdir()
    (tmp_path / "volume").mkdir()
    (tmp_path / "vol" / "link").symlink_to(tmp_path / "volume")
    with pytest.raises(Escapes):
        resolve_sub_path(tmp_path / "vol", "link")


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(Escapes):
        resolve_sub_path(tmp_path, "one/x")


def test_types_of_host_paths_are_checked(tmp_path: Path) -> None:
    file, directory = tmp_path / "file", tmp_path / "directory"
    file.touch()
    directory.mkdir()
    assert host_path(str(file), "File") == file
    assert host_path(str(directory), "Directory") == directory
    assert host_path(str(tmp_path / "whatever"), None) == tmp_path / "whatever"
    assert host_path("/dev/null", "CharDevice") == Path("/dev/null")
    with pytest.raises(WorldError) as caught:
        host_path(str(file), "Directory")
    assert str(caught.value) == f"hostPath type check failed: {file} is not a directory, it's a File"


def test_a_host_path_that_must_be_there_is_missed(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(WorldError) as caught:
        host_path(str(gone), "Directory")
    assert str(caught.value) == (
        f"hostPath type check failed, {gone} is not a directory, "
        f'unable to determine its type: path "{gone}" does not exist'
    )


def test_host_paths_are_made_when_asked_for(tmp_path: Path) -> None:
    assert host_path(str(tmp_path / "a" / "b"), "DirectoryOrCreate").is_dir()
    assert host_path(str(tmp_path / "file"), "FileOrCreate").is_file()


def test_a_socket_is_known_as_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert host_path(str(path), "Socket") == path


def test_a_host_path_with_steps_back_is_refused() -> None:
    with pytest.raises(WorldError, match=r"must not contain '\.\.'"):
        host_path("/tmp/../etc", "Directory")
