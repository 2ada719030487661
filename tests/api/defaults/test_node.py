"""What nodes get when nobody says otherwise."""

from __future__ import annotations

from tests.validation.pods import a_node


def test_all_of_a_node_is_allocatable_unless_it_says_otherwise() -> None:
    node = a_node()
    assert node.status.allocatable == node.status.capacity
    assert node.status.allocatable is not node.status.capacity


def test_what_a_node_says_is_allocatable_stays() -> None:
    node = a_node({"status.allocatable": {"cpu": "1"}})
    assert {name: str(amount) for name, amount in node.status.allocatable.items()} == {"cpu": "1"}


def test_amounts_are_rounded_up_to_thousandths() -> None:
    node = a_node({"status.capacity": {"cpu": "1500u"}})
    assert {name: str(amount) for name, amount in node.status.capacity.items()} == {"cpu": "2m"}
