"""The tests of chance can be repeated, and play as many rounds as they are asked to."""

from __future__ import annotations

import pytest

from tests.rounds import SEED_VARIABLE, SHARE_VARIABLE, rounds, seed_of, settle_seed


def test_a_given_seed_is_kept_and_another_is_chosen_for_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED_VARIABLE, "7")
    assert settle_seed() == "7"
    assert (seed_of("a"), seed_of("b")) == ("7-a", "7-b")
    chosen = set()
    for _ in range(3):
        monkeypatch.delenv(SEED_VARIABLE)
        chosen.add(settle_seed())
        assert seed_of("a") == f"{settle_seed()}-a"
    assert len(chosen) > 1


def test_a_run_plays_the_usual_rounds_and_a_soak_its_share_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARE_VARIABLE, raising=False)
    assert rounds(6, 200) == 6
    monkeypatch.setenv(SHARE_VARIABLE, "1")
    assert rounds(6, 200) == 200
    monkeypatch.setenv(SHARE_VARIABLE, "0.1")
    assert (rounds(6, 200), rounds(2, 4)) == (20, 1)


@pytest.mark.parametrize("share", ["0", "-1", "1.5", "nan", "all"])
def test_a_share_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, share: str) -> None:
    monkeypatch.setenv(SHARE_VARIABLE, share)
    with pytest.raises(ValueError, match=share):
        rounds(6, 200)
