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


class Correlating:
    def __init__(self) -> None:
        self.correlator = EventCorrelator()
        self.recorded = 0

    def record(self, event_: Event, seconds: float = 0) -> CorrelationResult | None:
        self.recorded += 1
        return self.correlator.correlate(event_, f"name-{self.recorded}", int(seconds * SECOND_NS))


def test_a_new_event_is_created_as_it_is() -> None:
    given_event = event("a")
    result = Correlating().record(given_event)
    assert result is not None
    assert result.patch is None
    assert result.event.metadata.name == result.recorded.name == "name-1"
    assert (result.event.count, result.event.message) == (1, "a")
    assert given_event.metadata.name == ""


def test_the_same_again_raises_the_count_of_the_first() -> None:
    correlating = Correlating()
    correlating.record(event("a"))
    correlating.record(event("other"))
    second = correlating.record(event("a"))
    third = correlating.record(event("a"))
    assert second is not None
    assert third is not None
    assert second.recorded is third.recorded
    assert second.recorded.name == "name-1"
    assert second.patch == {"count": 2, "lastTimestamp": "now", "message": "a"}
    assert third.patch == {"count": 3, "lastTimestamp": "now", "message": "a"}


def test_what_differs_in_more_than_the_message_is_not_alike() -> None:
    correlating = Correlating()
    for other in (
        event("a"),
        event("a", name="pod2"),
        event("a", reason="Killing"),
        event("a", type_="Normal"),
    ):
        result = correlating.record(other)
        assert result is not None
        assert result.patch is None


def test_from_the_tenth_similar_event_on_they_are_combined() -> None:
    correlating = Correlating()
    results = [correlating.record(event(f"m{number}"), number) for number in range(14)]
    assert all(result is not None and result.patch is None for result in results[:10])
    tenth = results[9]
    assert tenth is not None
    assert tenth.event.message == f"{COMBINED}m9"
    assert tenth.event.first_timestamp == rfc3339(9 * SECOND_NS)
    for number, result in enumerate(results[10:], start=10):
        assert result is not None
        assert result.recorded is tenth.recorded
        assert result.patch == {
            "count": number - 8,
            "lastTimestamp": rfc3339(number * SECOND_NS),
            "message": f"{COMBINED}m{number}",
        }


def test_after_ten_quiet_minutes_similar_events_stand_alone_again() -> None:
    correlating = Correlating()
    for number in range(12):
        correlating.record(event(f"m{number}"))
    result = correlating.record(event("fresh"), 601)
    assert result is not None
    assert result.event.message == "fresh"


def test_a_flood_about_one_object_is_cut_after_25_and_trickles_one_in_five_minutes() -> None:
    correlating = Correlating()
    passed = [
        correlating.record(event(f"m{number}", reason=f"R{number}")) is not None for number in range(40)
    ]
    assert passed == [True] * 25 + [False] * 15
    assert correlating.record(event("x", reason="X"), 299) is None
    assert correlating.record(event("y", reason="Y"), 301) is not None
    assert correlating.record(event("z", reason="Z"), 302) is None
    assert correlating.record(event("m", name="another"), 302) is not None


def test_what_was_cut_still_counts() -> None:
    correlating = Correlating()
    for _ in range(40):
        correlating.record(event("a"))
    later = correlating.record(event("a"), 301)
    assert later is not None
    assert later.patch is not None
    assert later.patch["count"] == 41


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 400)), max_size=200))
def test_no_object_ever_gets_more_than_its_share(steps: list[tuple[int, int, int]]) -> None:
    correlating = Correlating()
    now = 0
    passed: dict[int, int] = {}
    for who, message, wait in steps:
        now += wait
        if correlating.record(event(str(message), name=f"pod{who}"), now) is not None:
            passed[who] = passed.get(who, 0) + 1
    assert all(count <= 25 + now // 300 + 1 for count in passed.values())


def test_memory_is_bounded() -> None:
    correlating = Correlating()
    for number in range(5000):
        correlating.record(event("a", name=f"pod{number}"))
    first_again = correlating.record(event("a", name="pod0"))
    last_again = correlating.record(event("a", name="pod4999"))
    assert first_again is not None
    assert first_again.patch is None
    assert last_again is not None
    assert last_again.patch is not None
