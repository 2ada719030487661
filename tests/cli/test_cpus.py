"""`nodeward cpus`: the map of a node as text, and what is said of nodes without one."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.base.cpuset import CPUSet
from nodeward.cli.cpus_page import CPUPage, ShownContainer, ShownCPU, as_table, as_text
from nodeward.kubelet.cpu.topology import CPUDescription


def page(description: CPUDescription, *containers: ShownContainer, **fields: Any) -> CPUPage:
    topology = description.topology()
    cpus = tuple(
        ShownCPU(cpu, info.socket, info.numa_node, info.uncore_cache, info.core)
        for cpu, info in topology.details.items()
    )
    taken = CPUSet.EMPTY.union(*(CPUSet.parse(each.assigned) for each in containers))
    shared = str(topology.all_cpus - taken)
    return CPUPage("n1", "static", cpus=cpus, containers=containers, **{"shared": shared, **fields})


def owner(name: str, assigned: str, **fields: Any) -> ShownContainer:
    return ShownContainer("u", "app", assigned, namespace="default", pod=name, **fields)


def test_the_map_shows_every_cpu_with_its_owner_and_what_is_held() -> None:
    held = {"pending": "2-3", "held": "4", "held_seconds": 3.2, "held_until": "2026-11-15T20:41:07.500000Z"}
    text = as_text(
        page(
            CPUDescription(cores_per_numa=8, threads=2),
            owner("web", "2-4", **held),
            owner("db", "6-7,14-15", applied="6-7"),
            reserved="0,8",
            options={"scale-delay-time": "5s"},
        )
    )
    assert text.splitlines() == [
        "node n1: CPU manager policy static, scale-delay-time=5s",
        "16 CPUs: 2 reserved, 7 shared, 7 exclusive, 1 of them held",
        "",
        "socket 0, NUMA node 0",
        "   0-7   R . A A a . B B",
        "  8-15   R . . . . . B B",
        "",
        "A   default/web/app                  2-4          "
        "holds 4 until 20:41:07 UTC (for 3.2s), then keeps 2-3",
        "B   default/db/app                   6-7,14-15    still runs on 6-7",
        "R   reserved, never exclusive        0,8",
        ".   shared by all other containers   0-1,5,8-13",
    ]


def test_sockets_numa_nodes_and_caches_are_told_apart() -> None:
    text = as_text(
        page(CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=4, uncore=2), reserved="0")
    )
    assert text.splitlines()[2:10] == [
        "",
        "socket 0, NUMA node 0",
        "  0-3   R .   . .",
        "",
        "socket 0, NUMA node 1",
        "  4-7   . .   . .",
        "",
        "socket 1, NUMA node 2",
    ]


def test_more_owners_than_letters_get_longer_ones_and_none_is_r() -> None:
    owners = [owner(f"p{number}", str(number)) for number in range(60)]
    text = as_text(page(CPUDescription(cores_per_numa=60), *owners))
    rows = text.splitlines()[4].split()
    assert rows[0] == "0-59"
    assert len(rows) == 61
    assert len(set(rows)) == 61
    assert "R" not in rows
    assert (rows[1], rows[25], rows[26]) == ("A", "Z", "AA")


def test_a_core_with_an_offline_thread_leaves_a_gap() -> None:
    whole = page(CPUDescription(cores_per_numa=2, threads=2))
    less = CPUPage("n1", "static", cpus=whole.cpus[:3], shared="0-2")
    assert as_text(less).splitlines()[4:6] == ["  0-1   . .", "    2   ."]


def test_policy_none_is_said_in_words() -> None:
    text = as_text(CPUPage("n1", "none"))
    assert text.startswith(
        "node n1: CPU manager policy none: no container has CPUs of its own, all share all."
    )
    assert "cpuManagerPolicy: static" in text


def test_the_list_has_a_line_for_each_node_and_notes_on_the_silent() -> None:
    some = page(CPUDescription(cores_per_numa=4), owner("p", "1-2"), reserved="0")
    assert as_table(
        [some, CPUPage("n2", "none")], ["the kubelet of node 'n3' did not answer: x"]
    ).splitlines() == [
        "NODE   POLICY   CPUS   RESERVED   SHARED   EXCLUSIVE   HELD",
        "n1     static   4      1          1        2           0",
        "n2     none     -      -          -        -           -",
        "the kubelet of node 'n3' did not answer: x",
    ]


@pytest.mark.parametrize("cpus", [1, 2, 63, 1024])
def test_every_cpu_is_shown_exactly_once(cpus: int) -> None:
    text = as_text(page(CPUDescription(cores_per_numa=cpus)))
    assert text.splitlines()[4].count(".") == cpus
