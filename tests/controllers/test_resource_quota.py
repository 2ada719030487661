"""The status of a quota says what is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.cluster import (
    ConfigMap,
    ResourceQuota,
    ResourceQuotaSpec,
)
from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.service import Service, ServicePort, ServiceSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers

ONLY = tuple(entry for entry in CONTROLLERS if entry.name == "resourcequota-controller")


def run(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await main(each)

    run_virtual(inner)


def meta(name: str, namespace: str = "default") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


async def make_quota(
    each: Cluster, hard: dict[str, str], *, scopes: tuple[str, ...] = (), name: str = "q"
) -> None:
    amounts = {resource: Quantity.parse(text) for resource, text in hard.items()}
    spec = ResourceQuotaSpec(hard=amounts, scopes=list(scopes))
    await each.client.create(ResourceQuota(metadata=meta(name), spec=spec))
    await each.pass_time()


async def make_pod(each: Cluster, name: str, cpu: str = "", *, deadline: int | None = None) -> None:
    requests = {"cpu": Quantity.parse(cpu)} if cpu else {}
    containers = [Container(name="c", image="i", resources=ResourceRequirements(requests=requests))]
    spec = PodSpec(containers=containers, node_name="n", active_deadline_seconds=deadline)
    await each.client.create(Pod(metadata=meta(name), spec=spec))


async def used(each: Cluster, name: str = "q") -> dict[str, str]:
    await each.pass_time()
    status = (await each.client.get(ResourceQuota, name, "default")).status
    return {resource: str(amount) for resource, amount in status.used.items()}


def test_a_new_quota_counts_what_is_there_and_shows_its_limits() -> None:
    async def main(each: Cluster) -> None:
        await make_pod(each, "a", "500m")
        await make_pod(each, "b", "1")
        await make_quota(
            each, {"pods": "10", "requests.cpu": "4", "count/configmaps": "9", "count/widgets.x.io": "1"}
        )
        assert await used(each) == {"pods": "2", "requests.cpu": "1500m", "count/configmaps": "0"}
        found = await each.client.get(ResourceQuota, "q", "default")
        assert found.status.hard == found.spec.hard

    run(main)


def test_usage_follows_what_comes_and_goes() -> None:
    async def main(each: Cluster) -> None:
        await make_quota(each, {"pods": "10", "cpu": "4", "count/configmaps": "9", "services.nodeports": "2"})
        assert await used(each) == {
            "pods": "0",
            "cpu": "0",
            "count/configmaps": "0",
            "services.nodeports": "0",
        }
        await make_pod(each, "a", "2")
        await each.client.create(ConfigMap(metadata=meta("c")))
        ports = ServiceSpec(type="NodePort", ports=[ServicePort(port=80)])
        await each.client.create(Service(metadata=meta("s"), spec=ports))
        assert await used(each) == {
            "pods": "1",
            "cpu": "2",
            "count/configmaps": "1",
            "services.nodeports": "1",
        }
        body = {"status": {"phase": "Succeeded"}}
        await each.client.patch(Pod, "a", body, namespace="default", subresource="status")
        await each.client.delete(ConfigMap, "c", "default")
        await each.client.delete(Service, "s", "default")
        assert await used(each) == {
            "pods": "0",
            "cpu": "0",
            "count/configmaps": "0",
            "services.nodeports": "0",
        }

    run(main)


def test_scopes_say_which_pods_count() -> None:
    async def main(each: Cluster) -> None:
        await make_quota(each, {"pods": "10"}, scopes=("Terminating",))
        await make_quota(each, {"pods": "10"}, scopes=("BestEffort",), name="effort")
        await make_pod(each, "short", "1", deadline=60)
        await make_pod(each, "long")
        assert await used(each) == {"pods": "1"}
        assert await used(each, "effort") == {"pods": "1"}

    run(main)


def test_changed_limits_are_shown_and_counted_at_once() -> None:
    async def main(each: Cluster) -> None:
        await make_pod(each, "a", "1")
        await make_quota(each, {"pods": "10"})
        quota = await each.client.get(ResourceQuota, "q", "default")
        quota.spec.hard = {"cpu": Quantity.parse("3")}
        await each.client.update(quota)
        assert await used(each) == {"cpu": "1"}
        shown = (await each.client.get(ResourceQuota, "q", "default")).status.hard
        assert shown == {"cpu": Quantity.parse("3")}

    run(main)


def test_a_pod_that_should_have_ended_stops_counting_within_five_minutes() -> None:
    async def main(each: Cluster) -> None:
        await make_quota(each, {"pods": "10"})
        await make_pod(each, "stuck")
        await each.client.delete(Pod, "stuck", "default", grace_period=30)
        assert await used(each) == {"pods": "1"}
        await each.pass_time(360)
        assert await used(each) == {"pods": "0"}

    run(main)


def test_what_somebody_wrote_into_the_status_is_put_right() -> None:
    async def main(each: Cluster) -> None:
        await make_quota(each, {"pods": "10"})
        quota = await each.client.get(ResourceQuota, "q", "default")
        quota.status.used = {"pods": Quantity.parse("7")}
        await each.client.update(quota, subresource="status")
        assert await used(each) == {"pods": "0"}

    run(main)


def test_what_changed_while_nobody_looked_is_counted_at_the_next_start() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=()) as each:
            async with more_controllers(each, ONLY):
                await make_quota(each, {"pods": "10", "count/configmaps": "5"})
            await make_pod(each, "a")
            await each.client.create(ConfigMap(metadata=meta("c")))
            assert await used(each) == {"pods": "0", "count/configmaps": "0"}
            async with more_controllers(each, ONLY):
                assert await used(each) == {"pods": "1", "count/configmaps": "1"}

    run_virtual(main)
