"""What the cores want to write, sent by a node's own user: the API server takes all of it."""

from __future__ import annotations

import pytest

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.apiserver.auth.user import AUTHENTICATED, NODES, User
from nodeward.kubelet.node.features import discover
from nodeward.kubelet.node.lease import NAMESPACE, Create, LeaseCore, Outcome, Renew
from nodeward.kubelet.node.node_conditions import ALL_WELL
from nodeward.kubelet.node.node_core import NodeCore
from nodeward.kubelet.node.registration import reconcile
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running
from tests.apiserver.running import settings as server_settings
from tests.kubelet.node.nodes import READINESS, settings, specification
from tests.rules.test_readiness import CNI, gate

CHANCE = SeededChance(5)


async def looked(client: Client, core: NodeCore, clock: VirtualClock) -> Node:
    """One status round."""
    node = await client.get(Node, "n1")
    step = core.step(node, ALL_WELL, clock.now_ns(), clock.monotonic_ns())
    if step.patch is not None:
        node = await client.patch(Node, "n1", step.patch, subresource="status")
        core.reported(clock.monotonic_ns(), CHANCE)
    if step.gate_labels:
        labels = {"metadata": {"labels": step.gate_labels.patch()}}
        node = await client.patch(Node, "n1", labels, subresource="status")
    return node


async def registered(client: Client, chosen: NodeSpecification, clock: VirtualClock) -> NodeCore:
    core = NodeCore(chosen, discover(chosen.model), clock.monotonic_ns())
    node, _ = core.first_node(ALL_WELL, clock.now_ns())
    try:
        await client.create(node)
    except ApiError as error:
        if error.code != 409:
            raise
        found = reconcile(await client.get(Node, "n1"), chosen)
        if found.status_patch is not None:
            await client.patch(Node, "n1", found.status_patch, subresource="status")
        if found.spec_patch is not None:
            await client.patch(Node, "n1", found.spec_patch)
    core.reported(clock.monotonic_ns(), CHANCE)
    return core


def test_a_node_registers_reports_and_comes_back_with_its_own_rights_alone() -> None:
    bypass = gate(CNI, "BypassWithWarning", seconds=30)

    async def main(clock: VirtualClock) -> None:
        async with running(server_settings(gates=READINESS), clock=clock) as server:
            client = server.client("kubelet", User("system:node:n1", groups=(NODES, AUTHENTICATED)))
            plain = await registered(client, specification(settings(READINESS)), clock)
            node = await looked(client, plain, clock)
            assert node.status.declared_features
            # It comes back with a gate in its configuration, and after a reboot.
            chosen = specification(settings(READINESS, bypass), boot="boot-2")
            core = await registered(client, chosen, clock)
            node = await looked(client, core, clock)
            assert node.spec.readiness_gates == [bypass]
            assert node.metadata.labels[f"readiness-gate.{CNI}"] == "true"
            assert node.status.node_info.boot_id == "boot-2"
            await clock.sleep(31)
            node = await looked(client, core, clock)
            said = {each.type: (each.status, each.reason) for each in node.status.conditions}
            assert said[CNI] == ("Unknown", "TimeoutExceeded")
            assert said["Ready"] == ("True", "KubeletReady")
            assert (
                await looked(client, core, clock)
            ).metadata.resource_version == node.metadata.resource_version

    run_virtual(main, limit=1000)


def test_a_lease_is_made_renewed_and_taken_over_with_the_nodes_rights() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            client = server.client("kubelet", User("system:node:n1", groups=(NODES, AUTHENTICATED)))
            await registered(client, specification(), clock)
            uid = (await client.get(Node, "n1")).metadata.uid

            async def beat(core: LeaseCore) -> Outcome:
                core.node_is(uid)
                request = core.request(clock.now_ns())
                outcome = Outcome.DONE
                try:
                    if isinstance(request, Create):
                        await client.create(request.lease)
                    elif isinstance(request, Renew):
                        await client.patch(
                            Lease, "n1", request.patch, namespace=NAMESPACE, patch_type=PatchType.MERGE
                        )
                except ApiError as error:
                    outcome = {409: Outcome.EXISTS, 404: Outcome.GONE}[error.code]
                core.ended(outcome, clock.monotonic_ns(), CHANCE)
                return outcome

            first = LeaseCore("n1", 40, 0)
            assert await beat(first) is Outcome.DONE
            made = await client.get(Lease, "n1", NAMESPACE)
            await clock.sleep(10)
            assert await beat(first) is Outcome.DONE
            renewed = await client.get(Lease, "n1", NAMESPACE)
            assert renewed.spec.renew_time != made.spec.renew_time
            assert renewed.metadata.owner_references == made.metadata.owner_references
            second = LeaseCore("n1", 20, 0)
            assert [await beat(second), await beat(second)] == [Outcome.EXISTS, Outcome.DONE]
            taken = await client.get(Lease, "n1", NAMESPACE)
            assert taken.spec.lease_duration_seconds == 20
            await client.delete(Lease, "n1", NAMESPACE)
            assert [await beat(second), await beat(second)] == [Outcome.GONE, Outcome.DONE]
            other = server.client("kubelet", User("system:node:n2", groups=(NODES, AUTHENTICATED)))
            with pytest.raises(ApiError, match="can only access node lease with the same name"):
                await other.patch(Lease, "n1", {"spec": {}}, namespace=NAMESPACE, patch_type=PatchType.MERGE)

    run_virtual(main, limit=1000)
