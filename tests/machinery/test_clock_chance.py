"""Luck: real luck never repeats, seeded luck always does."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.machinery.clock import NAME_ALPHABET, Chance, RealChance, SeededChance


@pytest.fixture(params=[RealChance, lambda: SeededChance(1)], ids=["real", "seeded"])
def chance(request: pytest.FixtureRequest) -> Chance:
    made: Chance = request.param()
    return made


def draws(chance: Chance) -> list[object]:
    return [
        chance.uuid(),
        chance.name_suffix(),
        chance.uniform(0, 1),
        chance.randrange(10**12),
        chance.choice(range(10**12)),
        chance.randbytes(16),
    ]


def test_uuids_are_version_4_in_their_usual_text(chance: Chance) -> None:
    for _ in range(200):
        text = chance.uuid()
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


def test_draws_stay_within_their_bounds(chance: Chance) -> None:
    suffixes = "".join(chance.name_suffix() for _ in range(400))
    assert set(suffixes) == set(NAME_ALPHABET)
    assert len(suffixes) == 2000
    assert len(chance.name_suffix(9)) == 9
    assert all(2 <= chance.uniform(2, 3) <= 3 for _ in range(100))
    assert {chance.randrange(3) for _ in range(200)} == {0, 1, 2}
    assert {chance.choice("ab") for _ in range(100)} == {"a", "b"}
    assert len(chance.randbytes(7)) == 7


def test_draws_differ_from_each_other(chance: Chance) -> None:
    assert len({chance.uuid() for _ in range(1000)}) == 1000
    assert draws(chance) != draws(chance)


@given(st.integers() | st.text())
def test_the_same_seed_gives_the_same_draws(seed: int | str) -> None:
    assert draws(SeededChance(seed)) == draws(SeededChance(seed))
    assert draws(SeededChance(seed).child("a")) == draws(SeededChance(seed).child("a"))
    assert draws(SeededChance(seed).child("a")) != draws(SeededChance(seed).child("b"))


def test_a_childs_draws_do_not_shift_its_parents() -> None:
    undisturbed, parent = SeededChance(5), SeededChance(5)
    draws(parent.child("part"))
    assert draws(parent) == draws(undisturbed)


def test_seeded_draws_are_the_same_on_every_machine() -> None:
    assert SeededChance(0).uuid() == "45bf975c-b861-4614-abf6-1de8a801a841"
    assert SeededChance("nodeward").name_suffix() == "72lv7"
