"""Which events are told: repeats counted, similar ones combined, floods cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.cluster import Event, EventSource
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.event_correlation import COMBINED, CorrelationResult, EventCorrelator


def event(message: str, *, name: str = "pod", reason: str = "Failed", type_: str = "Warning") -> Event:
    return Event(
        metadata=ObjectMeta(namespace="default"),
        involved_object=ObjectReference(kind="Pod", namespace="default", name=name, uid="u"),
        reason=reason,
        message=message,
        source=EventSource(component="kubelet", host="n1"),
        first_timestamp="then",
        last_timestamp="now",
        count=1,
        type=type_,
    )


class Teller:
    def __init__(self) -> None:
        self.correlator = EventCorrelator()
        self.recorded = 0

    def tell(self, event_: Event, seconds: float = 0) -> CorrelationResult | None:
        self.recorded += 1
        return self.correlator.correlate(event_, f"name-{self.recorded}", int(seconds * SECOND_NS))


def test_a_new_event_is_created_as_it_is() -> None:
    given_event = event("a")
    result = Teller().tell(given_event)
    assert result is not None
    assert result.patch is None
    assert result.event.metadata.name == result.recorded.name == "name-1"
    assert (result.event.count, result.event.message) == (1, "a")
    assert given_event.metadata.name == ""


def test_the_same_again_raises_the_count_of_the_first() -> None:
    teller = Teller()
    teller.tell(event("a"))
    teller.tell(event("other"))
    second = teller.tell(event("a"))
    third = teller.tell(event("a"))
    assert second is not None
    assert third is not None
    assert second.recorded is third.recorded
    assert second.recorded.name == "name-1"
    assert second.patch == {"count": 2, "lastTimestamp": "now", "message": "a"}
    assert third.patch == {"count": 3, "lastTimestamp": "now", "message": "a"}


def test_what_differs_in_more_than_the_message_is_not_alike() -> None:
    teller = Teller()
    for other in (
        event("a"),
        event("a", name="pod2"),
        event("a", reason="Killing"),
        event("a", type_="Normal"),
    ):
        result = teller.tell(other)
        assert result is not None
        assert result.patch is None


def test_from_the_tenth_similar_event_on_they_are_combined() -> None:
    teller = Teller()
    verdicts = [teller.tell(event(f"m{number}"), number) for number in range(14)]
    assert all(result is not None and result.patch is None for result in verdicts[:10])
    tenth = verdicts[9]
    assert tenth is not None
    assert tenth.event.message == f"{COMBINED}m9"
    assert tenth.event.first_timestamp == rfc3339(9 * SECOND_NS)
    for number, result in enumerate(verdicts[10:], start=10):
        assert result is not None
        assert result.recorded is tenth.recorded
        assert result.patch == {
            "count": number - 8,
            "lastTimestamp": rfc3339(number * SECOND_NS),
            "message": f"{COMBINED}m{number}",
        }


def test_after_ten_quiet_minutes_similar_events_stand_alone_again() -> None:
    teller = Teller()
    for number in range(12):
        teller.tell(event(f"m{number}"))
    result = teller.tell(event("fresh"), 601)
    assert result is not None
    assert result.event.message == "fresh"


def test_a_flood_about_one_object_is_cut_after_25_and_trickles_one_in_five_minutes() -> None:
    teller = Teller()
    passed = [teller.tell(event(f"m{number}", reason=f"R{number}")) is not None for number in range(40)]
    assert passed == [True] * 25 + [False] * 15
    assert teller.tell(event("x", reason="X"), 299) is None
    assert teller.tell(event("y", reason="Y"), 301) is not None
    assert teller.tell(event("z", reason="Z"), 302) is None
    assert teller.tell(event("m", name="another"), 302) is not None


def test_what_was_cut_still_counts() -> None:
    teller = Teller()
    for _ in range(40):
        teller.tell(event("a"))
    later = teller.tell(event("a"), 301)
    assert later is not None
    assert later.patch is not None
    assert later.patch["count"] == 41


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 400)), max_size=200))
def test_no_object_ever_gets_more_than_its_share(steps: list[tuple[int, int, int]]) -> None:
    teller = Teller()
    now = 0
    passed: dict[int, int] = {}
    for who, message, wait in steps:
        now += wait
        if teller.tell(event(str(message), name=f"pod{who}"), now) is not None:
            passed[who] = passed.get(who, 0) + 1
    assert all(count <= 25 + now // 300 + 1 for count in passed.values())


def test_memory_is_bounded() -> None:
    teller = Teller()
    for number in range(5000):
        teller.tell(event("a", name=f"pod{number}"))
    first_again = teller.tell(event("a", name="pod0"))
    last_again = teller.tell(event("a", name="pod4999"))
    assert first_again is not None
    assert first_again.patch is None
    assert last_again is not None
    assert last_again.patch is not None
