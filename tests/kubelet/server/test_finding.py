"""Which instance's log is meant, and what is said when there is none: as kubelets say it."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from nodeward.kubelet.server.finding import Refused, log_attempt

RUNNING = ContainerState(running=ContainerStateRunning())
NOTHING = ContainerState()


def waiting(reason: str) -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


def ended(id_: str = "x://1") -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(container_id=id_))


def status(state: ContainerState, last: ContainerState = NOTHING, count: int = 0) -> PodStatus:
    return PodStatus(
        container_statuses=[ContainerStatus(name="c", state=state, last_state=last, restart_count=count)]
    )


@pytest.mark.parametrize(
    ("found", "previous", "attempt"),
    [
        pytest.param(status(RUNNING), False, 0, id="it runs"),
        pytest.param(status(RUNNING, ended(), 3), False, 3, id="it runs again"),
        pytest.param(status(RUNNING, ended(), 3), True, 2, id="the one before"),
        pytest.param(status(ended(), NOTHING, 1), False, 1, id="it has ended"),
        pytest.param(status(ended(), ended(), 1), True, 0, id="the one before the end"),
        pytest.param(status(waiting("CrashLoopBackOff"), ended(), 4), False, 4, id="it waits to run again"),
        pytest.param(
            status(waiting("CrashLoopBackOff"), ended(), 4), True, 4, id="the same is the one before"
        ),
        pytest.param(status(ended(""), ended(), 2), False, 2, id="the next did not start"),
    ],
)
def test_the_log_is_that_of_the_latest_instance_or_the_one_before(
    found: PodStatus, previous: bool, attempt: int
) -> None:
    assert log_attempt(found, "p", "c", previous=previous) == attempt


ABOUT = 'container "c" in pod "p"'


@pytest.mark.parametrize(
    ("found", "previous", "text"),
    [
        (PodStatus(), False, f"{ABOUT} is not available"),
        (status(RUNNING), True, f"previous terminated {ABOUT} not found"),
        (status(RUNNING, ended("")), True, f"previous terminated {ABOUT} not found"),
        (status(ended("")), False, f"{ABOUT} is terminated"),
        (status(waiting("x"), ended("")), False, f"{ABOUT} is terminated"),
        (status(waiting("ContainerCreating")), False, f"{ABOUT} is waiting to start: ContainerCreating"),
        (status(waiting("ErrImagePull")), False, f"{ABOUT} is waiting to start: image can't be pulled"),
        (
            status(waiting("ImagePullBackOff")),
            False,
            f"{ABOUT} is waiting to start: trying and failing to pull image",
        ),
        (status(NOTHING), False, f"{ABOUT} is waiting to start - no logs yet"),
    ],
)
def test_where_there_is_no_log_it_is_said_why(found: PodStatus, previous: bool, text: str) -> None:
    with pytest.raises(Refused) as refused:
        log_attempt(found, "p", "c", previous=previous)
    assert (refused.value.code, str(refused.value)) == (400, text)
