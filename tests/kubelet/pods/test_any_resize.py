"""Whatever happens to a pod that is resized, in whatever order: a resize that is complete is in force."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ResourceRequirements
from nodeward.base.quantity import Quantity
from nodeward.kubelet.pods.commands import Command, StartContainer, UpdateResources
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.resource_info import PodResourceInfo
from nodeward.kubelet.runtime.interface import (
    ContainerStarted,
    FoundContainer,
    FoundPod,
    ResourcesApplied,
    ResourcesRefused,
    SandboxStarted,
)
from nodeward.kubelet.runtime.resources import ContainerResources, kernel_resources
from tests.kubelet.pods.driver import BEGIN, RULES, UID, container, sidecar
from tests.kubelet.pods.test_any_order import AnyLife

_CPUS = st.sampled_from(["1", "2", "500m"])
_MEMORY = st.sampled_from(["64Mi", "128Mi", "1Gi"])


class AnyResize(AnyLife):
    """A pod whose containers are resized, too."""

    @initialize(has_sidecar=st.booleans(), policy=st.sampled_from(["Always", "OnFailure"]))
    def begin(self, has_sidecar: bool, policy: str) -> None:
        """A pod that runs."""
        inits = [sidecar("i2")] if has_sidecar else []
        mains = [container("m3"), container("m4")]
        super().begin(mains=mains, inits=inits, policy=policy, deadline=None, is_debugged=False)
        self.sandbox = "ready"
        self.do(self.life.happened(SandboxStarted(UID, "s", ("10.1.0.5",)), self.now))
        self._start_all()

    def _start_all(self) -> None:
        while self.starting:
            name, attempt = self.starting.popitem()
            self.running[name] = self.latest[name] = id_ = f"{name}-{attempt}"
            self.ended.pop(name, None)
            self.counts[name] = attempt
            event = ContainerStarted(UID, name, id_, "x", "sha", self.now, attempt)
            self.do(self.life.happened(event, self.now))

    @rule()
    def starts_are_answered(self) -> None:
        if not self.is_removing:
            self._start_all()

    def one_exits(self, data: st.DataObject, code: int) -> None:
        super().one_exits(data, code)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), is_one=st.sampled_from([True, False, False, False]))
    def one_may_exit(self, data: st.DataObject, is_one: bool) -> None:
        if is_one:
            self._exit(data.draw(st.sampled_from(sorted(self.running))), 1)

    # No rules here: pods that end at once are never resized, and their probes are told elsewhere.

    def a_verdict(self, name: str, kind: str, ok: bool | None) -> None:
        super().a_verdict(name, kind, ok)

    def it_is_deleted(self, grace: int) -> None:
        super().it_is_deleted(grace)

    def it_is_stopped(self, reason: str) -> None:
        super().it_is_stopped(reason)

    def nobody_knows_it(self) -> None:
        super().nobody_knows_it()

    def it_is_refused(self) -> None:
        super().it_is_refused()

    def an_old_story(self, name: str) -> None:
        super().an_old_story(name)

    def do(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StartContainer(name):
                    self.given[name] = self._allocated(name)
                    self.updating = None if self.updating and self.updating[0] == name else self.updating
                case UpdateResources(name, resources):
                    assert name in self.running, "a container that does not run is not changed"
                    assert self.updating is None, "one change after the other"
                    assert name not in self.asked, "a container that stops is left alone"
                    self.updating = (name, resources)
                case _:
                    pass
            super().do([command])

    @property
    def given(self) -> dict[str, ContainerResources]:
        """What the instances really have."""
        found: dict[str, ContainerResources] = self.__dict__.setdefault("_given", {})
        return found

    @property
    def updating(self) -> tuple[str, ContainerResources] | None:
        found: tuple[str, ContainerResources] | None = self.__dict__.get("_updating")
        return found

    @updating.setter
    def updating(self, update: tuple[str, ContainerResources] | None) -> None:
        self.__dict__["_updating"] = update

    def _allocated(self, name: str) -> ContainerResources:
        resources = self.life.allocated(name)
        assert resources is not None
        return kernel_resources(resources, None)

    @precondition(lambda self: self.running and not self.is_ending)
    @rule(data=st.data(), cpu=_CPUS, memory=_MEMORY, restarts=st.sampled_from([False, False, False, True]))
    def it_is_resized(self, data: st.DataObject, cpu: str, memory: str, restarts: bool) -> None:
        spec = self.pod.spec
        every = [each.name for each in (*spec.init_containers, *spec.containers)]
        chosen = data.draw(st.sampled_from(every))
        amounts = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
        policy = [ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")]

        def changed(each: Container) -> Container:
            if each.name != chosen:
                return each
            wanted = ResourceRequirements(requests=amounts, limits=amounts)
            return replace(each, resources=wanted, resize_policy=policy if restarts else [])

        inits, mains = (
            [changed(each) for each in spec.init_containers],
            [changed(each) for each in spec.containers],
        )
        meta = replace(self.pod.metadata, generation=self.pod.metadata.generation + 1)
        self.pod = replace(
            self.pod, metadata=meta, spec=replace(spec, init_containers=inits, containers=mains)
        )
        self.do(self.life.update(self.pod, self.now))
        self.do(self.life.accept_resize(self.pod, self.now, is_shrinking=False))

    @precondition(lambda self: self.updating is not None)
    @rule(is_good=st.booleans())
    def update_answers(self, is_good: bool) -> None:
        self._answer(is_good)

    def _answer(self, is_good: bool) -> None:
        assert self.updating is not None
        name, resources = self.updating
        self.updating = None
        if is_good and name in self.running:
            self.given[name] = self.given[name].with_changes(resources)
            event: ResourcesApplied | ResourcesRefused = ResourcesApplied(
                UID, name, self.running[name], self.given[name]
            )
        else:
            event = ResourcesRefused(UID, name, "no")
        self.do(self.life.happened(event, self.now))

    @precondition(
        lambda self: self.running and not self.starting and self.sandbox == "ready" and not self.hooks
    )
    @rule()
    def the_kubelet_starts_again(self) -> None:
        """What it knew is on the disk and in the status; an answer of the runtime may be lost."""
        if self.is_ending or self.asked:
            return
        self.pod = replace(self.pod, status=self.life.status(self.now))
        every = (*self.pod.spec.init_containers, *self.pod.spec.containers)
        sizes = {each.name: self.life.allocated(each.name) or each.resources for each in every}
        before = self.life.actuated_info()
        found = tuple(
            FoundContainer(name, id_, self.counts[name], "x", "sha", BEGIN)
            for name, id_ in self.running.items()
        )
        self.updating = None
        self.life = PodLifecycle(
            self.pod,
            self.now,
            RULES,
            FoundPod(UID, "shop", "web", "s", ("10.1.0.5",), found),
            PodResourceInfo(sizes),
            before,
        )
        self.do(self.life.start(self.now))

    @invariant()
    def a_resize_that_is_complete_is_in_force(self) -> None:
        self.do(self.life.settle_resize((), True, self.now))
        resize = self.life.resize
        if resize is None or resize.in_progress is not None or self.is_ending or self.life.is_terminating:
            return
        for name in self.running:
            if name != "d":
                assert self.given[name] == self._allocated(name), name

    def teardown(self) -> None:
        """Once everything answers, a resize is complete."""
        if hasattr(self, "life") and not self.life.is_terminating:
            for _ in range(60):
                self._start_all()
                if self.asked & set(self.running):
                    self._exit(sorted(self.asked & set(self.running))[0], 1)
                elif self.updating is not None:
                    self._answer(True)
                else:
                    self.the_next_moment_comes()
            self.do(self.life.settle_resize((), True, self.now))
            resize = self.life.resize
            assert resize is None or resize.in_progress is None, "a resize must be complete in the end"
        super().teardown()


AnyResize.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyResize = AnyResize.TestCase
