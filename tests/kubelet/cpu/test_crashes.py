"""Random traffic on a node with exclusive CPUs: crashes between any two steps, jumping clocks, failing files.

No CPU is in two exclusive sets; no set is applied before its delay; no file shows a set later than its application;
the CPUs a container started with never leave it; the checkpoint alone restores a valid state at any moment.
"""

from __future__ import annotations

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from tests.kubelet.cpu.crashing_node import Crash, CrashingNode
from tests.kubelet.cpu.static_nodes import guaranteed, resized

counts = st.sampled_from(["1", "2", "3", "4", "5", "6"])
first_counts = st.sampled_from(["1", "2", "500m"])


class CrashTraffic(RuleBasedStateMachine):
    """Pods come, go, grow and shrink; the kubelet is killed and started again."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    @initialize()
    def boot(self) -> None:
        self.node = CrashingNode()

    @precondition(lambda self: len(self.node.pods) < 3)
    @rule(cpus=st.lists(first_counts, min_size=1, max_size=2), fuse=st.none() | st.integers(1, 8))
    def start(self, cpus: list[str], fuse: int | None) -> None:
        self.number += 1
        pod = guaranteed(f"p{self.number}", *cpus, uid=f"uid-{self.number}")
        with self.may_crash(fuse):
            self.node.start(pod)

    @precondition(lambda self: self.node.pods)
    @rule(data=st.data(), fuse=st.none() | st.integers(1, 10))
    def resize(self, data: st.DataObject, fuse: int | None) -> None:
        pod = self.node.pods[data.draw(st.sampled_from(sorted(self.node.pods)))]
        cpus = [data.draw(counts) for _ in pod.spec.containers]
        with self.may_crash(fuse):
            self.node.resize(resized(pod, *cpus))

    @precondition(lambda self: self.node.pods)
    @rule(
        data=st.data(),
        more=st.integers(4, 6),
        fewer=st.integers(1, 3),
        seconds=st.sampled_from([0.5, 1.1, 4.9]),
        fuse=st.none() | st.integers(1, 12),
    )
    def grow_and_shrink(
        self, data: st.DataObject, more: int, fewer: int, seconds: float, fuse: int | None
    ) -> None:
        """Resize a pod twice, so that its second size waits; what happens next finds it waiting."""
        uid = data.draw(st.sampled_from(sorted(self.node.pods)))
        with self.may_crash(fuse):
            for count, wait in ((more, 1.1), (fewer, seconds)):
                pod = self.node.pods[uid]
                others = [str(each.resources.requests["cpu"]) for each in pod.spec.containers[1:]]
                self.node.resize(resized(pod, str(count), *others))
                self.node.clock.advance(wait)

    @precondition(lambda self: self.node.pods)
    @rule(data=st.data(), fuse=st.none() | st.integers(1, 2))
    def stop(self, data: st.DataObject, fuse: int | None) -> None:
        uid = data.draw(st.sampled_from(sorted(self.node.pods)))
        with self.may_crash(fuse):
            self.node.stop(uid)

    @precondition(lambda self: self.node.in_force)
    @rule(data=st.data())
    def restart_container(self, data: st.DataObject) -> None:
        self.node.restart_container(*data.draw(st.sampled_from(sorted(self.node.in_force))))

    @rule(
        seconds=st.sampled_from([0.1, 1.0, 2.5, 4.9, 5.0, 9.9, 12.0]),
        fuse=st.none() | st.integers(1, 6),
    )
    def pass_time(self, seconds: float, fuse: int | None) -> None:
        with self.may_crash(fuse):
            self.node.clock.advance(seconds)

    @rule(hours=st.integers(-48, 48))
    def set_the_wall_clock(self, hours: int) -> None:
        self.node.clock.wall_ns += hours * 3600 * SECOND_NS

    @rule(delay=st.sampled_from([0, 1, 5, 10]), fuse=st.none() | st.integers(1, 4))
    def restart(self, delay: int, fuse: int | None) -> None:
        with self.may_crash(fuse):
            self.node.boot(delay)

    @rule()
    def files_fail_for_now(self) -> None:
        self.node.files_fail = not self.node.files_fail

    @rule(fuse=st.none() | st.integers(1, 3))
    def files_are_late_and_come(self, fuse: int | None) -> None:
        if self.node.late_files is None:
            self.node.late_files = []
        else:
            with self.may_crash(fuse):
                self.node.write_late_files()

    @rule()
    def runtime_refuses_for_now(self) -> None:
        self.node.runtime_refuses = not self.node.runtime_refuses

    @rule()
    def settle(self) -> None:
        """Without faults and with time, every container has what its pod was allocated, and its file says so."""
        node = self.node
        node.files_fail = node.runtime_refuses = False
        node.write_late_files()
        node.clock.advance(60)
        for uid, pod in node.pods.items():
            assert node.manager.is_applied(uid)
            for container in pod.spec.containers:
                key = uid, container.name
                assigned = node.manager.cpus.state.assigned(*key)
                asked = container.resources.requests["cpu"].milli_value
                if assigned is not None and key in node.in_force:
                    assert node.in_force[key] == node.files[key] == assigned
                    assert 1000 * len(assigned) == asked
                elif key in node.in_force:
                    assert node.in_force[key] == node.manager.cpus.state.default
                    assert node.files[key] == CPUSet.EMPTY

    @invariant()
    def is_valid(self) -> None:
        self.node.check()

    def may_crash(self, fuse: int | None) -> _Fuse:
        return _Fuse(self.node, fuse)


class _Fuse:
    """Lets the kubelet crash after some steps, and starts it again."""

    def __init__(self, node: CrashingNode, steps: int | None) -> None:
        self._node, self._steps = node, steps

    def __enter__(self) -> None:
        self._node.fuse = self._steps

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self._node.fuse = None
        if kind is not None and issubclass(kind, Crash):
            self._node.boot(self._node.delay_ns // SECOND_NS)
            return True
        return False


# Not made shorter when one fails: that takes minutes, and the steps are told anyway.
CrashTraffic.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
TestCrashTraffic = CrashTraffic.TestCase
