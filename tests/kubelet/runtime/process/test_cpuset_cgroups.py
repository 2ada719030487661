"""Where a process finds the cgroup with the cpuset controller, on machines with either version of cgroups or both."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.kubelet.runtime.process.cpuset_cgroups import find_base, own_cgroup

_V1 = "31 30 0:27 {root} {at}/cpuset rw,relatime - cgroup cgroup rw,cpuset"
_OTHER = "32 30 0:28 / {at}/memory rw,relatime - cgroup cgroup rw,memory"
_V2 = "33 30 0:29 {root} {at} rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate"


def proc(tmp_path: Path, cgroup: str, *mounts: str) -> str:
    """What /proc/self says; what is mounted is below a directory of the test."""
    at = tmp_path / "proc"
    at.mkdir()
    (at / "cgroup").write_text(cgroup)
    (at / "mountinfo").write_text("".join(f"{each.format(root='/', at=tmp_path)}\n" for each in mounts))
    return str(at)


def test_version_one_has_a_hierarchy_for_the_controller(tmp_path: Path) -> None:
    found = own_cgroup(proc(tmp_path, "9:memory:/a\n3:cpuset:/agents/one\n0::/b\n", _OTHER, _V1))
    assert found == f"{tmp_path}/cpuset/agents/one"


def test_version_two_needs_the_controller_in_the_own_cgroup(tmp_path: Path) -> None:
    own = tmp_path / "agents" / "one"
    own.mkdir(parents=True)
    says = proc(tmp_path, "0::/agents/one\n", _V2)
    assert own_cgroup(says) == ""
    (own / "cgroup.controllers").write_text("cpu memory\n")
    assert own_cgroup(says) == ""
    (own / "cgroup.controllers").write_text("cpuset cpu memory\n")
    assert own_cgroup(says) == str(own)


def test_a_machine_with_both_goes_by_the_one_with_the_controller(tmp_path: Path) -> None:
    found = own_cgroup(proc(tmp_path, "3:cpuset:/\n0::/agents\n", _V2, _V1))
    assert found == f"{tmp_path}/cpuset"


def test_in_a_container_the_hierarchy_begins_at_the_containers_own_cgroup(tmp_path: Path) -> None:
    mounted = _V1.replace("{root}", "/docker/abc")
    assert own_cgroup(proc(tmp_path, "3:cpuset:/docker/abc/inner\n", mounted)) == f"{tmp_path}/cpuset/inner"


@pytest.mark.parametrize(
    ("cgroup", "mounts"),
    [
        ("", ()),
        ("0::/x\n", ()),
        ("3:cpuset:/x\n", (_OTHER,)),
        ("3:cpuset:/elsewhere\n", (_V1.replace("{root}", "/docker/abc"),)),
    ],
    ids=["nothing", "nothing mounted", "not mounted", "outside of what is mounted"],
)
def test_without_the_controller_there_is_none(tmp_path: Path, cgroup: str, mounts: tuple[str, ...]) -> None:
    assert own_cgroup(proc(tmp_path, cgroup, *mounts)) == ""


def test_a_process_that_cannot_be_looked_at_has_none(tmp_path: Path) -> None:
    assert own_cgroup(str(tmp_path / "nobody")) == ""


def test_cpus_that_are_not_there_make_no_cgroup(tmp_path: Path) -> None:
    assert find_base(str(tmp_path), "4000") == ""
