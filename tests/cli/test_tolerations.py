"""`nodeward tolerations`: every place that may hold a numeric toleration is looked at, and what it says holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from nodeward.api import scheme
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import KubeObject
from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.cli.tolerations import as_text, as_tree, gather
from nodeward.machinery.client import Client
from nodeward.rules.numeric_use import KINDS, numeric_uses, without_gate
from tests.apiserver.running import running, settings

GATES = "TaintTolerationComparisonOperators=true,DynamicResourceAllocation=true,DRADeviceTaints=true"
ABOVE = {"key": "example.com/sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}
WORN = {"key": "example.com/wear", "operator": "Lt", "value": "90", "effect": "NoSchedule"}
PLAIN = {"key": "example.com/sla", "operator": "Equal", "value": "900", "effect": "NoExecute"}

Tree = dict[str, Any]


def template(*tolerations: Tree, **spec: Any) -> Tree:
    container = {"name": "c", "image": "i"}
    return {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [container], "tolerations": [PLAIN, *tolerations], **spec},
    }


def workload(*tolerations: Tree) -> Tree:
    return {"selector": {"matchLabels": {"a": "b"}}, "template": template(*tolerations)}


def devices(*tolerations: Tree) -> Tree:
    exactly = {"deviceClassName": "gpu", "tolerations": list(tolerations)}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


SPECS: dict[str, Callable[..., Tree]] = {
    "Deployment": lambda *each: {"spec": workload(*each)},
    "StatefulSet": lambda *each: {"spec": {**workload(*each), "serviceName": "s"}},
    "DaemonSet": lambda *each: {"spec": workload(*each)},
    "ReplicaSet": lambda *each: {"spec": workload(*each)},
    "ReplicationController": lambda *each: {"spec": {"selector": {"a": "b"}, "template": template(*each)}},
    "PodTemplate": lambda *each: {"template": template(*each)},
    "Job": lambda *each: {"spec": {"template": _ending(*each)}},
    "CronJob": lambda *each: {
        "spec": {"schedule": "0 4 * * *", "jobTemplate": {"spec": {"template": _ending(*each)}}}
    },
    "Pod": lambda *each: {"spec": template(*each)["spec"]},
    "ResourceClaim": lambda *each: {"spec": devices(*(WORN for _ in each))},
    "ResourceClaimTemplate": lambda *each: {"spec": {"spec": devices(*(WORN for _ in each))}},
}


def _ending(*tolerations: Tree) -> Tree:
    return template(*tolerations, restartPolicy="Never")


def made(kind: type[KubeObject], name: str, *tolerations: Tree) -> Any:
    tree = {"metadata": {"name": name, "namespace": "default"}, **SPECS[kind.__name__](*tolerations)}
    return from_tree(tree, kind)


def with_server(work: Callable[..., Coroutine[Any, Any, None]]) -> None:
    async def start() -> None:
        async with running(settings(gates=GATES, disable_admission=("ServiceAccount",))) as server:
            await work(server)

    asyncio.run(start())


def test_every_kind_that_holds_tolerations_is_searched() -> None:
    async def work(server: Any) -> None:
        client: Client = server.client("test")
        for kind in KINDS:
            await client.create(made(kind, "numeric", ABOVE))
            await client.create(made(kind, "plain"))
        found, notes = await gather(client)
        assert notes == []
        assert [(each.kind.name, each.meta.name) for each in found] == [
            (kind.__name__, "numeric") for kind in KINDS
        ]
        assert (await gather(client, "kube-system"))[0] == []

    with_server(work)


def test_no_kind_with_tolerations_is_forgotten() -> None:
    """RuntimeClasses take no numeric ones; the rest of the scheme is searched for lists of tolerations."""
    holding = {each.type.__name__ for each in scheme.KINDS if _holds_tolerations(each.type)}
    known = {kind.__name__ for kind in KINDS}
    assert holding - known <= {"RuntimeClass", "PodGroup", "ControllerRevision"}
    assert known <= holding


def _holds_tolerations(kind: Any) -> bool:
    import msgspec

    def search(found: Any, depth: int = 0) -> bool:
        if isinstance(found, msgspec.inspect.StructType) and depth < 9:
            return any(
                field.name == "tolerations" or search(field.type, depth + 1)
                for field in found.fields
                if field.name not in ("metadata", "status")
            )
        if isinstance(found, msgspec.inspect.UnionType):
            return any(search(each, depth) for each in found.types)
        if isinstance(found, (msgspec.inspect.ListType, msgspec.inspect.Metadata)):
            return search(getattr(found, "item_type", None) or getattr(found, "type", None), depth)
        return False

    return search(msgspec.inspect.type_info(kind))


@pytest.mark.parametrize(
    ("pod", "taints", "becomes"),
    [
        ({}, [], "waits for a node without such a taint"),
        ({"nodeName": "n"}, [], "goes on"),
        ({"nodeName": "n"}, [{"key": "example.com/sla", "value": "950", "effect": "NoSchedule"}], "goes on"),
        (
            {"nodeName": "n"},
            [{"key": "example.com/sla", "value": "950", "effect": "NoExecute"}],
            "is evicted",
        ),
        # Another toleration covers the taint, too.
        (
            {"nodeName": "n"},
            [{"key": "example.com/sla", "value": "900", "effect": "NoExecute"}],
            "is evicted",
        ),
        ({"nodeName": "gone"}, None, "unknown: its node is not there"),
    ],
)
def test_what_becomes_of_a_pod_is_what_components_without_the_gate_do(
    pod: Tree, taints: list[Tree] | None, becomes: str
) -> None:
    at_least = [ABOVE] if not taints or taints[0]["value"] != "900" else [{**ABOVE, "value": "899"}]
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": at_least, **pod}
    node = (
        None if taints is None else from_tree({"metadata": {"name": "n"}, "spec": {"taints": taints}}, Node)
    )
    assert without_gate(from_tree({"metadata": {"name": "p"}, "spec": spec}, Pod), node) == becomes


def test_a_second_toleration_that_covers_the_taint_keeps_the_pod_or_gives_it_its_seconds() -> None:
    taint = {"key": "example.com/sla", "value": "950", "effect": "NoExecute"}
    node = from_tree({"metadata": {"name": "n"}, "spec": {"taints": [taint]}}, Node)
    for other, becomes in (
        ({"key": "example.com/sla", "operator": "Exists"}, "goes on"),
        ({**taint, "tolerationSeconds": 60}, "is evicted after 60s"),
    ):
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "tolerations": [ABOVE, other]}
        assert without_gate(from_tree({"metadata": {"name": "p"}, "spec": spec}, Pod), node) == becomes
    ended = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "tolerations": [ABOVE]}}
    assert without_gate(from_tree({**ended, "status": {"phase": "Failed"}}, Pod), node) == "has ended"


def test_the_table_has_a_line_per_toleration_and_programs_get_the_paths() -> None:
    async def work(server: Any) -> None:
        client: Client = server.client("test")
        await client.create(made(_kind("Deployment"), "web", {**ABOVE, "tolerationSeconds": 30}, WORN))
        found, notes = await gather(client)
        assert as_text(found, [*notes, "nodes may not be listed: whatever"]).splitlines() == [
            "NAMESPACE   KIND         NAME   TOLERATION                                 WITHOUT THE GATE",
            "default     Deployment   web    example.com/sla Gt 900:NoExecute for 30s   new pods are refused",
            "                                example.com/wear Lt 90:NoSchedule",
            "note: nodes may not be listed: whatever",
        ]
        (item,) = as_tree(found, notes)["items"]
        assert [each["path"] for each in item["tolerations"]] == [
            "spec.template.spec.tolerations[1]",
            "spec.template.spec.tolerations[2]",
        ]
        assert (item["apiVersion"], item["kind"]) == ("apps/v1", "Deployment")

    with_server(work)


def _kind(name: str) -> type[KubeObject]:
    return next(kind for kind in KINDS if kind.__name__ == name)


def test_kinds_that_may_not_be_listed_are_named_and_the_others_shown() -> None:
    async def work(server: Any) -> None:
        nobody = server.client("test", User("nobody", groups=(AUTHENTICATED,)))
        found, notes = await gather(nobody)
        assert found == []
        assert len(notes) == len(KINDS) + 1
        assert notes[0] == "nodes may not be listed: what becomes of running pods is not known"
        assert "deployments.apps may not be listed: left out" in notes
        assert as_text(found, []) == "no toleration uses Lt or Gt"

    with_server(work)


def test_a_pod_without_numbers_has_nothing_to_tell() -> None:
    assert numeric_uses(made(Pod, "p")) == []
    (use,) = numeric_uses(made(Pod, "p", ABOVE))
    assert (use.path, str(use)) == ("spec.tolerations[1]", "example.com/sla Gt 900:NoExecute")
