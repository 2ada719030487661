"""The heartbeat of a node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.duration import MILLISECOND_NS, SECOND_NS
from nodeward.kubelet.node.lease import Create, LeaseCore, Outcome, Renew
from nodeward.machinery.clock import VIRTUAL_START_NS, SeededChance

CHANCE = SeededChance(3)


def core(uid: str = "u1") -> LeaseCore:
    found = LeaseCore("n1", 40, 0)
    found.node_is(uid)
    return found


def test_a_lease_belongs_to_its_node_and_waits_for_it() -> None:
    lonely = LeaseCore("n1", 40, 0)
    assert lonely.request(VIRTUAL_START_NS) is None
    request = core().request(VIRTUAL_START_NS)
    assert isinstance(request, Create)
    lease = request.lease
    assert (lease.metadata.name, lease.metadata.namespace) == ("n1", "kube-node-lease")
    (owner,) = lease.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Node", "n1", "u1")
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("n1", 40)
    assert lease.spec.renew_time is not None
    assert lease.spec.renew_time.endswith("Z")


def test_it_is_renewed_every_quarter_of_its_duration_with_a_small_spread() -> None:
    lease = core()
    lease.ended(Outcome.DONE, 0, CHANCE)
    assert 10 * SECOND_NS <= lease.next_ns <= 10.4 * SECOND_NS
    request = lease.request(VIRTUAL_START_NS)
    assert isinstance(request, Renew)
    assert request.patch.keys() == {"spec"}
    assert request.patch["spec"].keys() == {"leaseDurationSeconds", "renewTime"}


def test_one_that_is_there_already_is_taken_over_at_once() -> None:
    lease = core()
    lease.ended(Outcome.EXISTS, 5 * SECOND_NS, CHANCE)
    assert lease.next_ns == 5 * SECOND_NS
    request = lease.request(VIRTUAL_START_NS)
    assert isinstance(request, Renew)
    assert request.patch["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert request.patch["spec"]["holderIdentity"] == "n1"
    lease.ended(Outcome.DONE, 5 * SECOND_NS, CHANCE)
    request = lease.request(VIRTUAL_START_NS)
    assert isinstance(request, Renew)
    assert "metadata" not in request.patch


def test_a_node_that_was_made_anew_gets_its_lease_back() -> None:
    lease = core()
    lease.ended(Outcome.DONE, 0, CHANCE)
    lease.node_is("u2")
    request = lease.request(VIRTUAL_START_NS)
    assert isinstance(request, Renew)
    assert request.patch["metadata"]["ownerReferences"][0]["uid"] == "u2"
    lease.ended(Outcome.GONE, 7, CHANCE)
    assert lease.next_ns == 7
    assert isinstance(lease.request(VIRTUAL_START_NS), Create)


def test_a_failed_renewal_is_tried_five_times_at_once_then_with_growing_waits() -> None:
    lease = core()
    lease.ended(Outcome.DONE, 0, CHANCE)
    waits, resets = [], []
    for _ in range(12):
        resets.append(lease.ended(Outcome.FAILED, 0, CHANCE))
        waits.append(lease.next_ns // MILLISECOND_NS)
    assert waits == [0, 0, 0, 0, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]
    assert resets == [False, True, True, True, True] + [False] * 7
    lease.ended(Outcome.DONE, 0, CHANCE)
    lease.ended(Outcome.FAILED, 0, CHANCE)
    assert lease.next_ns == 0


def test_a_lease_that_cannot_be_made_is_waited_for_from_the_first_failure() -> None:
    lease = core()
    waits = []
    for _ in range(7):
        lease.ended(Outcome.FAILED, 0, CHANCE)
        waits.append(lease.next_ns // MILLISECOND_NS)
    assert waits == [200, 400, 800, 1600, 3200, 6400, 7000]


@given(st.lists(st.sampled_from(Outcome), max_size=30))
def test_whatever_happens_the_next_request_is_soon(outcomes: list[Outcome]) -> None:
    lease = core()
    for outcome in outcomes:
        lease.ended(outcome, 100 * SECOND_NS, CHANCE)
        assert 100 * SECOND_NS <= lease.next_ns <= 111 * SECOND_NS
        assert lease.request(VIRTUAL_START_NS) is not None
