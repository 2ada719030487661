"""A namespace uses no more than its quotas allow, however many ask at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.cluster import (
    ConfigMap,
    Event,
    ResourceQuotaSpec,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
)
from nodeward.api.core_v1.cluster import ResourceQuota as Quota
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.service import Service, ServicePort, ServiceSpec
from nodeward.apiserver.admission.quota_usage import CachedQuotaTally
from nodeward.apiserver.admission.resource_quota import PATIENCE_NS, ResourceQuotaPlugin
from nodeward.base.duration import SECOND_NS
from nodeward.rules.quota import usage
from tests.apiserver.admission.world import (
    admitted,
    amounts,
    asking,
    create,
    forbidden,
    meta,
    pod,
    put,
    remove,
    update,
    world,
)


def quota(name: str = "q", scopes: list[str] | None = None, **hard: str) -> Quota:
    spec = ResourceQuotaSpec(hard=amounts(**hard), scopes=scopes or [])
    return Quota(metadata=meta(name, "default"), spec=spec)


def sized(name: str, cpu: str, **spec: Any) -> Pod:
    return pod(name, containers=[asking("c", amounts(cpu=cpu), cpu=cpu)], **spec)


def test_one_more_than_allowed_is_refused() -> None:
    plugin = ResourceQuotaPlugin(world(quota(pods="2"), pod("a"), pod("b")))
    assert forbidden(plugin, create(pod("c"))) == (
        "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    )


def test_pods_that_have_ended_use_nothing_but_still_count_as_objects() -> None:
    ended = pod("a")
    ended.status.phase = "Succeeded"
    admitted(ResourceQuotaPlugin(world(quota(pods="1"), ended)), create(pod("b")))
    plugin = ResourceQuotaPlugin(world(quota(count_pods="1"), ended))
    assert forbidden(plugin, create(pod("b"))) == (
        "exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: count/pods=1"
    )


def test_compute_is_summed_and_every_excess_listed() -> None:
    plugin = ResourceQuotaPlugin(world(quota(requests__cpu="1", limits__cpu="1500m"), sized("a", "800m")))
    assert forbidden(plugin, create(sized("b", "900m"))) == (
        "exceeded quota: q, requested: limits.cpu=900m,requests.cpu=900m, "
        "used: limits.cpu=800m,requests.cpu=800m, limited: limits.cpu=1500m,requests.cpu=1"
    )
    admitted(plugin, create(sized("b", "200m")))


def test_containers_must_say_what_a_quota_limits() -> None:
    plugin = ResourceQuotaPlugin(world(quota(requests__cpu="1", limits__memory="1Gi")))
    assert forbidden(plugin, create(pod("b", containers=[asking("x"), asking("y")]))) == (
        "failed quota: q: must specify limits.memory for: x,y; requests.cpu for: x,y"
    )


def test_writes_on_their_way_count() -> None:
    env = world(quota(pods="1"))
    plugin = ResourceQuotaPlugin(env)
    first = pod("a")
    admitted(plugin, create(first))
    assert "used: pods=1" in forbidden(plugin, create(pod("b")))
    put(env, first)  # arrived: counted once, not twice
    assert "used: pods=1" in forbidden(plugin, create(pod("b")))
    remove(env, first)
    admitted(plugin, create(pod("b")))


def test_a_write_that_never_arrives_is_forgotten() -> None:
    env = world(quota(pods="1"))
    plugin = ResourceQuotaPlugin(env)
    admitted(plugin, create(pod("a")))
    env.clock.elapsed_ns += PATIENCE_NS + 1  # type: ignore[attr-defined]
    admitted(plugin, create(pod("b")))


def test_a_second_try_of_the_same_write_counts_once() -> None:
    plugin = ResourceQuotaPlugin(world(quota(pods="1")))
    admitted(plugin, create(pod("a")))
    admitted(plugin, create(pod("a")))


def test_a_dry_run_takes_no_room() -> None:
    plugin = ResourceQuotaPlugin(world(quota(pods="1")))
    admitted(plugin, create(pod("a"), is_dry_run=True))
    admitted(plugin, create(pod("b")))


def test_a_write_that_one_quota_refuses_counts_in_none() -> None:
    plugin = ResourceQuotaPlugin(world(quota("a", pods="1"), quota("b", requests__cpu="1")))
    assert forbidden(plugin, create(sized("big", "2"))).startswith("exceeded quota: b")
    admitted(plugin, create(sized("small", "1")))


def test_a_resize_is_charged_by_what_it_adds() -> None:
    old = sized("a", "1")
    plugin = ResourceQuotaPlugin(world(quota(requests__cpu="2"), old))
    admitted(plugin, update(sized("a", "500m"), old, "resize"))
    assert forbidden(plugin, update(sized("a", "3"), old, "resize")) == (
        "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=1, limited: requests.cpu=2"
    )
    admitted(plugin, update(sized("a", "3"), old))  # the spec cannot change this way


def test_scopes_choose_what_a_quota_is_about() -> None:
    plugin = ResourceQuotaPlugin(world(quota(scopes=["BestEffort"], pods="0")))
    admitted(plugin, create(sized("a", "1")))
    assert "exceeded quota" in forbidden(plugin, create(pod("b")))
    plugin = ResourceQuotaPlugin(world(quota(scopes=["Terminating"], pods="0")))
    admitted(plugin, create(pod("a")))
    running = pod("b")
    deadline = pod("b", active_deadline_seconds=10)
    assert "exceeded quota" in forbidden(plugin, update(deadline, running))


def test_a_quota_can_be_about_some_priorities() -> None:
    made = quota(pods="0")
    made.spec.scope_selector = ScopeSelector(
        match_expressions=[
            ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="In", values=["high"])
        ]
    )
    plugin = ResourceQuotaPlugin(world(made))
    admitted(plugin, create(pod("a", priority_class_name="low")))
    admitted(plugin, create(pod("a")))
    assert "exceeded quota" in forbidden(plugin, create(pod("a", priority_class_name="high")))


def test_objects_of_any_kind_can_be_counted() -> None:
    one = ConfigMap(metadata=meta("a", "default"))
    two = ConfigMap(metadata=meta("b", "default"))
    plugin = ResourceQuotaPlugin(world(quota(configmaps="1"), one))
    assert forbidden(plugin, create(two)) == (
        "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
    )
    made = quota()
    made.spec.hard = amounts(count_deployments__apps="0")
    plugin = ResourceQuotaPlugin(world(made))
    assert "count/deployments.apps=1" in forbidden(plugin, create(Deployment(metadata=meta("d", "default"))))
    made.spec.hard = amounts(count_events="0")
    admitted(ResourceQuotaPlugin(world(made)), create(Event(metadata=meta("e", "default"))))


def test_services_count_node_ports_and_balancers() -> None:
    def service(kind: str) -> Service:
        ports = [ServicePort(port=80), ServicePort(port=81)]
        return Service(metadata=meta("s", "default"), spec=ServiceSpec(type=kind, ports=ports))

    plugin = ResourceQuotaPlugin(world(quota(services__nodeports="1"), service("ClusterIP")))
    assert forbidden(plugin, update(service("NodePort"), service("ClusterIP"))) == (
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, "
        "limited: services.nodeports=1"
    )
    admitted(plugin, update(service("ClusterIP"), service("ClusterIP")))


def test_a_pod_that_should_be_gone_is_not_charged_for_ever() -> None:
    lost = pod("lost")
    lost.metadata.deletion_timestamp = "2026-01-01T00:00:30Z"
    lost.metadata.deletion_grace_period_seconds = 30
    env = world(quota(pods="1"), lost)
    plugin = ResourceQuotaPlugin(env)
    assert "used: pods=1" in forbidden(plugin, create(pod("a")))
    env.clock.elapsed_ns += 61 * SECOND_NS  # type: ignore[attr-defined]
    admitted(plugin, create(pod("a")))


STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "gone", "dying", "ask"])))


@given(STEPS)
def test_the_running_sum_is_the_sum(steps: list[tuple[str, str]]) -> None:
    env = world()
    cache = env.hub.cache(env.kind(Pod))
    tally = CachedQuotaTally(cache, "default", lambda obj: usage("pods", obj, env.gates, env.clock.now_ns()))
    for name, step in steps:
        made = sized(name, step if step.isdigit() else "1")
        if step == "gone":
            remove(env, made)
        elif step == "dying":
            made.metadata.deletion_timestamp = "2026-01-01T00:10:00Z"
            put(env, made)
        elif step != "ask":
            put(env, made)
        if step == "ask":
            tally.used()
    fresh = CachedQuotaTally(cache, "default", lambda obj: usage("pods", obj, env.gates, env.clock.now_ns()))
    expected = {name: amount for name, amount in fresh.used().items() if amount}
    assert {name: amount for name, amount in tally.used().items() if amount} == expected
