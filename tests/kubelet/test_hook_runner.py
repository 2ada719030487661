"""Hooks of containers: a request, a while of nothing, and what a failure says."""

from __future__ import annotations

import asyncio

from nodeward.api.core_v1.container import (
    Container,
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    SleepAction,
)
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.api.meta import ObjectMeta
from nodeward.kubelet.hook_runner import HookRunner
from nodeward.kubelet.pods.container_life import POST_START, PRE_STOP
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.clock import RealClock, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.probing.servers import Web, free_port, reply, serving

POD = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u"), status=PodStatus(pod_ip="127.0.0.1"))


def before_stop(handler: LifecycleHandler) -> Container:
    return Container(name="c", lifecycle=Lifecycle(pre_stop=handler))


def http(port: int, path: str = "/bye") -> Container:
    return before_stop(LifecycleHandler(http_get=HTTPGetAction(path=path, port=port)))


def test_a_request_introduces_itself_and_any_answer_will_do() -> None:
    web = Web(bye=reply(500))

    async def main() -> tuple[bool, str]:
        async with serving(web) as port:
            hooks = HookRunner(SimRuntime(VirtualClock()), RealClock(), "1.36")
            return await hooks.run(POD, http(port), PRE_STOP, 5.0)

    assert asyncio.run(main()) == (True, "")
    assert "User-Agent: kube-lifecycle/1.36\r\n" in web.asked[0]


def test_a_request_nobody_answers_has_failed() -> None:
    port = free_port()
    hooks = HookRunner(SimRuntime(VirtualClock()), RealClock())
    ok, text = asyncio.run(hooks.run(POD, http(port), PRE_STOP, 5.0))
    assert not ok
    assert text == (
        'HTTP lifecycle hook (/bye) for Container "c" in Pod "p_ns(u)" failed - error: '
        f'Get "http://127.0.0.1:{port}/bye": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


def test_a_sleep_takes_its_time_but_not_more_than_the_pod_has() -> None:
    async def main(clock: VirtualClock) -> None:
        hooks = HookRunner(SimRuntime(clock), clock)
        container = before_stop(LifecycleHandler(sleep=SleepAction(seconds=7)))
        began_ns = clock.now_ns()
        assert await hooks.run(POD, container, PRE_STOP, 30.0) == (True, "")
        assert clock.now_ns() - began_ns == 7_000_000_000
        ok, text = await hooks.run(POD, container, PRE_STOP, 3.0)
        assert not ok
        assert text.endswith("error: container terminated before sleep hook finished")
        assert clock.now_ns() - began_ns == 10_000_000_000

    run_virtual(main)


def test_a_command_in_a_container_that_does_not_run_has_failed() -> None:
    async def main(clock: VirtualClock) -> None:
        hooks = HookRunner(SimRuntime(clock), clock)
        container = before_stop(LifecycleHandler(exec=ExecAction(command=["say", "bye"])))
        ok, text = await hooks.run(POD, container, PRE_STOP, 3.0)
        assert not ok
        assert text.startswith('Exec lifecycle hook ([say bye]) for Container "c" in Pod "p_ns(u)" failed')

    run_virtual(main)


def test_a_hook_that_is_not_there_goes_well() -> None:
    async def main(clock: VirtualClock) -> None:
        hooks = HookRunner(SimRuntime(clock), clock)
        container = before_stop(LifecycleHandler(sleep=SleepAction(seconds=7)))
        assert await hooks.run(POD, container, POST_START, 3.0) == (True, "")
        assert await hooks.run(POD, Container(name="c"), PRE_STOP, 3.0) == (True, "")

    run_virtual(main)
