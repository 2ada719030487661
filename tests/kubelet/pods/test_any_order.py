"""Whatever happens, in whatever order: what must stay true of a pod's life stays true."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodeward.api.core_v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    Probe,
)
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.commands import (
    Command,
    DeleteFromApi,
    RemoveContainer,
    RemovePod,
    RunHook,
    StartContainer,
    StartSandbox,
    StopContainer,
)
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    ImagePulled,
    PodGone,
    SandboxFailed,
    SandboxStarted,
)
from tests.kubelet.pods.driver import BEGIN, RULES, UID, a_pod, container, debugger, deleted, hooked, sidecar

_CODES = ContainerRestartRuleOnExitCodes(operator="In", values=[42])
_OVER = [ContainerRestartRule(action="RestartAllContainers", exit_codes=_CODES)]
_PROBED = {"startup_probe": Probe(), "liveness_probe": Probe(), "readiness_probe": Probe()}

INITS = (
    lambda: container("i0"),
    lambda: sidecar("i1", **_PROBED),
    lambda: sidecar("i2"),
    lambda: container("i3"),
)
MAINS = (
    lambda: container("m0", **_PROBED),
    lambda: container("m1", restart_policy="Never", restart_policy_rules=_OVER),
    lambda: hooked("m2", post_start=True, pre_stop=True),
    lambda: container("m3"),
)
CODES = st.sampled_from([0, 0, 1, 42, 137])


def _chosen(makers: tuple[object, ...], least: int) -> st.SearchStrategy[list[Container]]:
    numbers = st.lists(st.sampled_from(range(len(makers))), min_size=least, max_size=3, unique=True)
    return numbers.map(lambda chosen: [makers[number]() for number in sorted(chosen)])  # type: ignore[operator]


class AnyLife(RuleBasedStateMachine):
    """The runtime as a set of open questions, answered in any order."""

    @initialize(
        mains=_chosen(MAINS, 1),
        inits=_chosen(INITS, 0),
        policy=st.sampled_from(["Always", "OnFailure", "Never"]),
        deadline=st.sampled_from([None, None, 100]),
        is_debugged=st.booleans(),
    )
    def begin(
        self,
        mains: list[Container],
        inits: list[Container],
        policy: str,
        deadline: int | None,
        is_debugged: bool,
    ) -> None:
        debuggers = [debugger("d")] if is_debugged else []
        self.pod = a_pod(
            *mains,
            inits=inits,
            policy=policy,
            active_deadline_seconds=deadline,
            ephemeral_containers=debuggers,
        )
        self.now = BEGIN
        self.life = PodLifecycle(self.pod, self.now, RULES)
        self.sandbox = "none"
        self.starting: dict[str, int] = {}
        self.running: dict[str, str] = {}
        #: how the latest instance of each ended
        self.ended: dict[str, int] = {}
        self.latest: dict[str, str] = {}
        self.asked: set[str] = set()
        self.hooks: set[tuple[str, str]] = set()
        self.is_ending = False
        self.is_removing = False
        self.deletes = 0
        self.counts: dict[str, int] = {}
        self.terminal = ""
        self.do(self.life.start(self.now))

    def do(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StartSandbox():
                    assert self.sandbox in ("none", "failed")
                    assert not self.is_ending
                    self.sandbox = "starting"
                case StartContainer(name, attempt):
                    self._check_start(name, attempt)
                    self.starting[name] = attempt
                case StopContainer(name, grace):
                    assert name in self.running or name in self.starting
                    assert grace >= 2
                    self.asked.add(name)
                case RunHook(name, kind):
                    assert name in self.running
                    self.hooks.add((name, kind))
                case RemoveContainer(id=id_):
                    name = id_.partition("-")[0]
                    assert id_ not in self.running.values(), "removed while it runs"
                    if self.latest[name] == id_:
                        # The pod starts over: what was done before counts no more.
                        del self.ended[name]
                case RemovePod():
                    assert not self.running
                    assert not self.is_removing
                    self.is_removing = True
                case DeleteFromApi():
                    assert self.is_removing
                    self.deletes += 1
                    assert self.deletes == 1
                case _:
                    pass

    def _check_start(self, name: str, attempt: int) -> None:
        assert name not in self.running, "two instances of one container"
        assert name not in self.starting, "a start beside a start"
        assert self.sandbox == "ready"
        assert not self.is_ending, "nothing starts once the end began"
        assert not self.life.is_terminating
        assert attempt >= self.counts.get(name, 0)
        if name.startswith("m"):
            for one in self.pod.spec.init_containers:
                if one.restart_policy == "Always":
                    assert one.name in {*self.counts}, "a main container before a sidecar"
                else:
                    assert self.ended.get(one.name) == 0, "a main container before its init container is done"

    # -- what the runtime tells

    @precondition(lambda self: self.sandbox == "starting" and not self.is_removing)
    @rule(is_good=st.booleans())
    def sandbox_answers(self, is_good: bool) -> None:
        self.sandbox = "ready" if is_good else "failed"
        event = SandboxStarted(UID, "s", ("10.1.0.5",)) if is_good else SandboxFailed(UID, "no")
        self.do(self.life.happened(event, self.now))

    @precondition(lambda self: self.starting)
    @rule(
        data=st.data(),
        how=st.sampled_from(["ok", "ok", "ok", "ErrImagePull", "CreateContainerError"]),
    )
    def start_answers(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.starting)))
        attempt = self.starting.pop(name)
        if how != "ok":
            self.do(self.life.happened(ContainerFailed(UID, name, how, "no"), self.now))
            return
        id_ = f"{name}-{attempt}"
        self.do(self.life.happened(ImagePulled(UID, name, "x", was_present=True), self.now))
        if not self.is_removing:
            # What starts in the middle of being removed is stopped by the runtime itself.
            self.running[name] = id_
            self.latest[name] = id_
            self.ended.pop(name, None)
            self.counts[name] = attempt
        self.do(self.life.happened(ContainerStarted(UID, name, id_, "x", "sha", self.now, attempt), self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), code=CODES)
    def one_exits(self, data: st.DataObject, code: int) -> None:
        self._exit(data.draw(st.sampled_from(sorted(self.running))), code)

    @precondition(lambda self: self.asked & set(self.running))
    @rule(data=st.data(), code=CODES)
    def one_obeys(self, data: st.DataObject, code: int) -> None:
        self._exit(data.draw(st.sampled_from(sorted(self.asked & set(self.running)))), code)

    def _exit(self, name: str, code: int) -> None:
        id_ = self.running.pop(name)
        self.asked.discard(name)
        self.hooks = {hook for hook in self.hooks if hook[0] != name}
        self.ended[name] = code
        reason = "Error" if code else "Completed"
        self.do(
            self.life.happened(ContainerExited(UID, name, id_, code, reason, self.now, self.now), self.now)
        )

    @rule(name=st.sampled_from(["i1", "m0", "m3"]))
    def an_old_story(self, name: str) -> None:
        """An exit of an instance that is no more."""
        self.do(self.life.happened(ContainerExited(UID, name, "old", 1, "Error", self.now), self.now))

    @precondition(lambda self: self.is_removing)
    @rule()
    def pod_is_gone(self) -> None:
        self.starting.clear()
        self.do(self.life.happened(PodGone(UID), self.now))

    # -- what the agent tells

    @precondition(lambda self: self.hooks)
    @rule(data=st.data(), ok=st.booleans())
    def hook_ends(self, data: st.DataObject, ok: bool) -> None:
        name, kind = data.draw(st.sampled_from(sorted(self.hooks)))
        self.hooks.discard((name, kind))
        self.do(self.life.hook_done(name, kind, ok, "", self.now))

    @rule(
        name=st.sampled_from(["i1", "m0", "m3"]),
        kind=st.sampled_from(["startup", "liveness", "readiness"]),
        ok=st.sampled_from([True, True, False, None]),
    )
    def a_verdict(self, name: str, kind: str, ok: bool | None) -> None:
        planned = {(plan.container, plan.kind) for plan in self.life.probes()}
        if (name, kind) in planned:
            self.do(self.life.probed(name, kind, ok, "", self.now))

    @rule()
    def the_next_moment_comes(self) -> None:
        due = self.life.next_deadline_ns()
        if due is not None:
            self.now = due
            self.do(self.life.tick(self.now))

    @rule(seconds=st.integers(0, 30))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * SECOND_NS
        self.do(self.life.tick(self.now))

    @rule(grace=st.integers(0, 40))
    def it_is_deleted(self, grace: int) -> None:
        self.is_ending = True
        self.pod = deleted(self.pod, self.now, grace)
        self.do(self.life.update(self.pod, self.now))

    @rule(reason=st.sampled_from(["Evicted", "Terminated"]))
    def it_is_stopped(self, reason: str) -> None:
        self.is_ending = True
        self.do(self.life.stop(reason, "why", self.now, 5))

    @rule()
    def nobody_knows_it(self) -> None:
        self.is_ending = True
        self.do(self.life.gone(self.now))

    @rule()
    def it_is_refused(self) -> None:
        self.is_ending = True
        self.do(self.life.reject("OutOfcpu", "full", self.now))

    # -- what must stay true

    @invariant()
    def time_does_not_stand_still(self) -> None:
        due = self.life.next_deadline_ns()
        assert due is None or due > self.now

    @invariant()
    def the_status_makes_sense(self) -> None:
        status = self.life.status(self.now)
        if self.terminal:
            assert status.phase == self.terminal, "a terminal phase stays"
        if status.phase in ("Succeeded", "Failed"):
            self.terminal = status.phase
            assert not self.running, "terminal while something runs"
            assert self.life.is_finished
        for one in (
            *status.init_container_statuses,
            *status.container_statuses,
            *status.ephemeral_container_statuses,
        ):
            state = one.state
            assert [state.waiting, state.running, state.terminated].count(None) == 2
            assert state.running is None or one.name in self.running
            assert not one.ready or state.waiting is None
            shown = f"shown {one.name}"
            assert one.restart_count >= self.counts.get(shown, 0), "restartCount fell"
            self.counts[shown] = one.restart_count
        types = [each.type for each in status.conditions]
        assert len(types) == len(set(types))

    @invariant()
    def plans_are_about_what_runs(self) -> None:
        for plan in self.life.probes():
            assert self.running[plan.container] == plan.container_id

    def teardown(self) -> None:
        """Whatever happened, a pod that is deleted goes, once everything answers."""
        if not hasattr(self, "life"):
            return
        self.it_is_deleted(30)
        for _ in range(200):
            if self.life.can_be_deleted:
                break
            if self.is_removing:
                self.pod_is_gone()
            elif self.asked & set(self.running):
                self._exit(sorted(self.asked & set(self.running))[0], 0)
            elif self.starting:
                name = sorted(self.starting)[0]
                del self.starting[name]
                self.do(self.life.happened(ContainerFailed(UID, name, "ErrImagePull", "no"), self.now))
            else:
                self.the_next_moment_comes()
        assert self.life.can_be_deleted, "a deleted pod must go in the end"
        assert self.life.status(self.now).phase in ("Succeeded", "Failed")


AnyLife.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyLife.TestCase
