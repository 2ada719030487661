"""`nodeward fleet`: what it prints, what it writes, and what it refuses without writing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.cli.fleet import act
from nodeward.cli.main import build_parser
from nodeward.cluster.fleet_control import FILE, MAP_NAME, NAMESPACE
from nodeward.cluster.fleet_file import fleet_text, load_fleet
from nodeward.machinery.client import Client
from tests.apiserver.running import running

BLUE = {
    "name": "blue",
    "nodes": 3,
    "version": "1.35",
    "featureGates": {"TaintTolerationComparisonOperators": True},
}


def with_fleet(work: Callable[[Client], Coroutine[Any, Any, None]], text: str | None = None) -> None:
    """An API server with a fleet's ConfigMap, and nobody who follows it."""

    async def main() -> None:
        async with running() as server:
            client = server.client("test")
            if text is not None:
                metadata = ObjectMeta(name=MAP_NAME, namespace=NAMESPACE)
                await client.create(ConfigMap(metadata=metadata, data={FILE: text, "other": "kept"}))
            await work(client)

    asyncio.run(main())


async def fleet(client: Client, *words: str) -> None:
    assert await act(client, build_parser().parse_args(["fleet", *words])) == 0


async def stored(client: Client) -> ConfigMap:
    return await client.get(ConfigMap, MAP_NAME, NAMESPACE)


def test_each_action_changes_what_it_says_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(client: Client) -> None:
        await fleet(
            client,
            "upgrade",
            "blue",
            "--version",
            "1.36",
            "--feature-gates",
            "TaintTolerationComparisonOperators=false",
        )
        await fleet(client, "scale", "blue", "5")
        await fleet(client, "cut-off", "blue-4")
        await fleet(client, "reboot", "blue-1")
        await fleet(client, "reboot", "blue-1")
        found = await stored(client)
        assert found.data["other"] == "kept"
        plan = load_fleet(found.data[FILE].encode(), "map", "1.37")
        (pool,) = plan.pools
        assert (pool.nodes, pool.version, pool.feature_gates) == (5, "1.36", "")
        assert {name: (state.is_cut_off, state.boots) for name, state in plan.nodes.items()} == {
            "blue-4": (True, 0),
            "blue-1": (False, 2),
        }
        await fleet(client, "reconnect", "blue-4")
        assert [*load_fleet((await stored(client)).data[FILE].encode(), "map", "1.37").nodes] == ["blue-1"]
        # Nodes that are scaled away take what was said of them along.
        await fleet(client, "scale", "blue", "1")
        assert not load_fleet((await stored(client)).data[FILE].encode(), "map", "1.37").nodes

    with_fleet(work, fleet_text([BLUE]))
    assert (
        capsys.readouterr().out.splitlines()
        == [
            "pool blue: 1.35 -> 1.36; its kubelets restart",
            "pool blue: 3 -> 5 nodes",
            "node blue-4 is cut off",
            "node blue-1 is rebooted",
            "node blue-1 is rebooted",
            "node blue-4 is connected again",
            "pool blue: 5 -> 1 nodes",
            "node blue-1 is rebooted",
        ][:7]
    )


def test_how_an_upgrade_goes_is_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(client: Client) -> None:
        await fleet(client, "upgrade", "blue", "--version", "1.37", "--at-once", "2", "--pause", "30s")
        (pool,) = load_fleet((await stored(client)).data[FILE].encode(), "map", "1.37").pools
        assert (pool.at_once, pool.pause_ns) == (2, 30 * SECOND_NS)

    with_fleet(work, fleet_text([BLUE]))
    assert "restart" in capsys.readouterr().out


def test_the_list_tells_pools_and_what_is_the_matter_with_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(client: Client) -> None:
        await fleet(client, "list")

    with_fleet(
        work, fleet_text([BLUE, {"name": "green", "nodes": 10}]) + "nodes: [{name: blue-0, cutOff: true}]\n"
    )
    assert capsys.readouterr().out.splitlines() == [
        "POOL    NODES   READY   VERSION   UP-TO-DATE   FEATURE-GATES",
        "blue    3       0       1.35      0            TaintTolerationComparisonOperators=true",
        "green   10      0       1.37      0            -",
        "blue-0: cut off",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("upgrade", "bleu", "--version", "1.36"), "there is no pool 'bleu'; there are: blue"),
        (("upgrade", "blue"), "say what to upgrade to: --version, --feature-gates or both"),
        (("upgrade", "blue", "--version", "1.12"), "pools[0].version: "),
        (("upgrade", "blue", "--feature-gates", "NodeReadinesGates=true"), "NodeReadinessGates"),
        (("upgrade", "blue", "--version", "1.36", "--pause", "5"), "pools[0].rollout.pause: "),
        (("cut-off", "blue-3"), "pool 'blue' has the nodes blue-0 to blue-2"),
        (("reboot", "n-1"), "no pool has this node"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(words: tuple[str, ...], said: str) -> None:
    async def work(client: Client) -> None:
        before = await stored(client)
        with pytest.raises(ConfigError) as refused:
            await fleet(client, *words)
        assert said in str(refused.value)
        assert await stored(client) == before

    with_fleet(work, fleet_text([BLUE]))


def test_without_a_fleet_the_way_to_one_is_told() -> None:
    async def work(client: Client) -> None:
        with pytest.raises(ConfigError, match="start one with nodeward up --nodes N"):
            await fleet(client, "list")

    with_fleet(work)
