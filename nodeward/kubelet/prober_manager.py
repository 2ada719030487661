"""The prober manager: one worker for every probe that runs, asked when its time comes.

Pod workers call `plan` when the probes of a pod have changed. A worker (`pods.probing`) keeps the rhythm and adds up
results; the node's prober (`node_services.Prober`) asks; a verdict goes back to the pod's life through `act`.

What must stay true: a probe whose plan is gone is asked no more, and an answer that comes after that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.kubelet.agent import ManagedPod
from nodeward.kubelet.kubelet_events import KubeletEvents
from nodeward.kubelet.pods.commands import Command
from nodeward.kubelet.pods.probing import ProbeWorker, unhealthy
from nodeward.kubelet.probing.answer import ProbeAnswer
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import EagerTasks

#: Tells a pod's life that something happened at a time; the life gives the commands that follow.
Happening: TypeAlias = Callable[[int], list[Command]]


class ProberManager:
    """The probes of all pods of one host. `act` carries out what follows, `current` is the pod with its status."""

    def __init__(
        self,
        clock: Clock,
        wheel: TimerWheel,
        events: KubeletEvents,
        tasks: EagerTasks,
        act: Callable[[ManagedPod, Happening], None],
        current: Callable[[ManagedPod], Pod],
    ) -> None:
        self._clock = clock
        self._wheel = wheel
        self._events = events
        self._tasks = tasks
        self._act = act
        self._current = current

    def plan(self, managed: ManagedPod, now_ns: int) -> None:
        """Start workers for new probes of a pod; workers of probes that still run go on."""
        plans = managed.plans = tuple(managed.life.probes())
        workers = []
        for plan in plans:
            worker = next((each for each in managed.workers if each.plan == plan), None)
            if worker is None:
                worker = ProbeWorker(plan, now_ns)
                self._schedule(managed, worker, now_ns)
            workers.append(worker)
        managed.workers = tuple(workers)

    def _schedule(self, managed: ManagedPod, worker: ProbeWorker, now_ns: int) -> None:
        wait_ns = max(worker.next_ns - now_ns, 0)
        self._wheel.at(self._clock.monotonic_ns() + wait_ns, lambda: self._due(managed, worker))

    def _due(self, managed: ManagedPod, worker: ProbeWorker) -> None:
        is_managed = managed.agent.pods.get(managed.uid) is managed
        if worker not in managed.workers or not is_managed or worker.is_on_hold:
            return
        worker.began(self._clock.now_ns())
        self._tasks.start(self._ask(managed, worker))

    async def _ask(self, managed: ManagedPod, worker: ProbeWorker) -> None:
        prober = managed.agent.services.prober
        try:
            answer = await prober.probe(managed.life.pod, lambda: self._current(managed), worker.plan)
        except WorldError as error:
            answer = ProbeAnswer(None, str(error))
        self._judge(managed, worker, answer)

    def _judge(self, managed: ManagedPod, worker: ProbeWorker, answer: ProbeAnswer) -> None:
        now_ns, ok, text = self._clock.now_ns(), answer.ok, answer.text
        verdict = worker.result(ok, now_ns)
        if not worker.is_on_hold:
            self._schedule(managed, worker, now_ns)
        if verdict is None and ok:
            return
        plan = worker.plan
        if verdict is not None or ok is None:
            self._act(managed, lambda now: managed.life.probed(plan.container, plan.kind, ok, text, now))
        else:
            self._events.about_pod(
                managed.agent, managed.life.pod, unhealthy(plan.container, plan.kind, text)
            )
