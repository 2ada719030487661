"""What is left for pods."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.quantity import ZERO, Quantity
from nodeward.kubelet.config import load_text
from nodeward.kubelet.config.reserved import Reservation

HEAD = b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CAPACITY = {
    name: Quantity.parse(text)
    for name, text in {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}.items()
}


def left(text: str, capacity: dict[str, Quantity] = CAPACITY) -> dict[str, str]:
    settings = load_text(HEAD + text.encode(), "k", "1.37")
    return {name: str(amount) for name, amount in settings.reservation.allocatable(capacity).items()}


def test_without_a_word_only_the_eviction_thresholds_are_kept_back() -> None:
    found = left("")
    assert (found["cpu"], found["memory"], found["pods"]) == ("4", "8092Mi", "110")
    assert Quantity.parse(found["ephemeral-storage"]).value == 100 * 2**30 - 100 * 2**30 // 10


def test_reservations_add_up_with_a_threshold() -> None:
    text = (
        "systemReserved: {cpu: 500m, memory: 1Gi}\nkubeReserved: {cpu: 250m, memory: 512Mi}\n"
        "evictionHard: {memory.available: 512Mi}"
    )
    assert left(text) == {"cpu": "3250m", "memory": "6Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def test_thresholds_that_are_not_named_are_kept_when_asked_for() -> None:
    text = "evictionHard: {memory.available: 512Mi}\nmergeDefaultEvictionSettings: true"
    assert left(text)["memory"] == "7680Mi"
    assert Quantity.parse(left(text)["ephemeral-storage"]) < CAPACITY["ephemeral-storage"]


def test_huge_pages_are_no_memory_for_others_and_nothing_is_less_than_nothing() -> None:
    pages = CAPACITY | {"hugepages-2Mi": Quantity.parse("1Gi")}
    assert left("evictionHard: {memory.available: 1Gi}", pages)["memory"] == "6Gi"
    assert left("systemReserved: {cpu: '9'}")["cpu"] == "0"


@given(
    st.integers(0, 2**40),
    st.integers(0, 2**40),
    st.one_of(st.integers(1, 99).map("{}%".format), st.integers(1, 2**40).map(str)),
)
def test_what_is_left_is_never_more_than_there_is_and_never_negative(
    have: int, kept: int, threshold: str
) -> None:
    reservation = Reservation({"memory": Quantity.of_int(kept)}, {"memory.available": threshold})
    found = reservation.allocatable({"memory": Quantity.of_int(have)})["memory"]
    assert ZERO <= found <= Quantity.of_int(have)
