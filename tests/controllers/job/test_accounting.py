"""The books: every pod is in one of its states, and gets from one to the next once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.batch_v1 import Job, JobSpec, JobStatus
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.job.accounting import MAX_UNCOUNTED, enter, own_copy, settle
from nodeward.controllers.job.job_state import look_at
from nodeward.controllers.job.pod_facts import TRACKING

PHASES = ("Pending", "Running", "Succeeded", "Failed")


def pod(number: int, phase: str, *, tracked: bool = True) -> Pod:
    finalizers = [TRACKING] if tracked else []
    return Pod(metadata=ObjectMeta(uid=f"u{number}", finalizers=finalizers), status=PodStatus(phase=phase))


def released(one: Pod) -> Pod:
    return Pod(metadata=ObjectMeta(uid=one.metadata.uid), status=one.status)


@given(st.lists(st.sampled_from(PHASES), max_size=12), st.data())
def test_a_controller_that_dies_after_any_step_counts_every_pod_once(
    phases: list[str], data: st.DataObject
) -> None:
    pods = [pod(number, phase) for number, phase in enumerate(phases)]
    stored = JobStatus()
    # Each round is one life: it stores the entries, or not; releases some; stores the count, or not.
    for _ in range(data.draw(st.integers(1, 6))):
        job = Job(spec=JobSpec(completions=100, parallelism=100), status=stored)
        state = look_at(job, pods, (), 0)
        status = own_copy(stored)
        tracked = {one.metadata.uid for one in state.tracked}
        settle(status, tracked)
        entries = enter(state, status, None)
        if data.draw(st.booleans()):
            continue
        stored = own_copy(status)
        gone = {one.metadata.uid for one in entries.release if data.draw(st.booleans())}
        pods = [released(one) if one.metadata.uid in gone else one for one in pods]
        settle(status, tracked - gone)
        if data.draw(st.booleans()):
            stored = own_copy(status)
    job = Job(spec=JobSpec(completions=100, parallelism=100), status=stored)
    final = look_at(job, pods, (), 0)
    assert final.succeeded == phases.count("Succeeded")
    assert final.failed == phases.count("Failed")


def test_no_more_than_five_hundred_are_entered_at_a_time() -> None:
    job = Job(spec=JobSpec(completions=2000, parallelism=2000), status=own_copy(JobStatus()))
    state = look_at(job, [pod(number, "Succeeded") for number in range(800)], (), 0)
    entries = enter(state, own_copy(job.status), None)
    assert (len(entries.release), entries.is_full) == (MAX_UNCOUNTED, True)
    assert state.succeeded == 800


def test_a_pod_known_to_be_released_is_not_counted_again_by_an_old_copy() -> None:
    job = Job(spec=JobSpec(completions=2, parallelism=2), status=JobStatus(succeeded=1))
    state = look_at(job, [pod(0, "Succeeded"), pod(1, "Running")], ("u0",), 0)
    assert (state.succeeded, len(state.new_succeeded), len(state.tracked)) == (1, 0, 1)
