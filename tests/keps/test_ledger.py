"""The ledger can be trusted: pages are read whole, marks are counted as they are, and nothing hides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.keps.ledger import KEPS, ROOT, Entry, LedgerError, entries, read_ledger
from tests.keps.proving import FAILED, PASSED, SKIPPED, Gathering, Outcome, judge, marked_files

_HEAD = "# A page\n\nSome | words.\n\n| id | statement | where | kind |\n|---|---|---|---|\n"
_MARK = re.compile(r"@statement\(([^)]*)\)")


def _ledger(*rows: str) -> dict[str, Entry]:
    return {entry.id: entry for entry in entries("5328", _HEAD + "\n".join(rows), "page.md")}


def test_rows_become_entries_with_the_number_of_the_kep_in_front() -> None:
    found = _ledger("| D1 | it is so | api | test |", "| D2 | it is said | docs | docs: nothing to run |")
    assert found["5328-D1"] == Entry("5328-D1", "it is so", "api", None)
    assert found["5328-D2"].docs_reason == "nothing to run"
    assert found["5328-D2"].kep == "5328"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("| D1 | text | api |", "page.md:7: 3 cells"),
        ("| D1 | | api | test |", "page.md:7: an empty cell"),
        ("| D1 | text | api | maybe |", "page.md:7: kind 'maybe'"),
        ("| D1 | text | api | docs: |", "page.md:7: kind 'docs:'"),
        ("| D1 | text | api | test |\n| D1 | text | api | test |", "page.md:8: D1 is already on line 7"),
    ],
)
def test_a_broken_row_is_an_error_with_its_line(row: str, complaint: str) -> None:
    with pytest.raises(LedgerError, match=re.escape(complaint)):
        _ledger(row)


def test_other_tables_of_a_page_are_not_statements() -> None:
    other = "| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |"
    assert not list(entries("5328", other, "page.md"))


def test_a_missing_page_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"docs/keps/kep-5328\.md: no such page"):
        read_ledger(tmp_path)


def test_the_ledger_of_this_repository_has_every_statement_of_the_five_proposals() -> None:
    ids = {kep: [name.partition("-")[2] for name in read_ledger() if name.startswith(kep)] for kep in KEPS}
    assert ids["5328"] == [f"D{n}" for n in range(1, 64)]
    assert ids["5471"] == [f"T{n}" for n in range(1, 45)]
    assert ids["5233"] == [f"R{n}" for n in range(1, 44)]
    assert ids["6122"][:72] == [str(n) for n in range(1, 73)]
    assert len(ids["6122"]) == 72 + 4 + 9 + 2 + 5
    assert ids["5945"][:57] == [str(n) for n in range(1, 58)]
    assert len(ids["5945"]) == 57 + 8 + 3 + 11 + 3


def test_every_mark_in_the_tests_names_a_statement_that_is_in_the_ledger() -> None:
    known = read_ledger()
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in marked_files(ROOT / "tests")
        if path != Path(__file__)
        for marks in _MARK.findall(path.read_text(encoding="utf-8"))
        for name in re.findall(r'(?<!=)"([^"]*)"', marks)
        if name not in known
    ]
    assert not wrong


def test_a_statement_is_proven_when_every_test_that_names_it_passed() -> None:
    ledger = _ledger("| D1 | a | api | test |", "| D2 | b | api | test |", "| D3 | c | x | docs: words |")
    verdict = judge(ledger, [Outcome("t1", ("5328-D1",), PASSED), Outcome("t2", ("5328-D1",), PASSED)])
    assert verdict.lines[:2] == ["KEP-5328  proven 1/3  docs 1  open 1", "  open: D2"]
    assert not verdict.problems


@pytest.mark.parametrize("result", [FAILED, SKIPPED])
def test_one_failed_or_skipped_test_opens_the_statement_and_fails_the_count(result: str) -> None:
    ledger = _ledger("| D1 | a | api | test |")
    verdict = judge(ledger, [Outcome("t1", ("5328-D1",), PASSED), Outcome("t2", ("5328-D1",), result)])
    assert verdict.lines[0] == "KEP-5328  proven 0/1  docs 0  open 1"
    assert verdict.problems == [f"t2: {result}, so 5328-D1 is not proven"]


def test_marks_that_name_nothing_known_or_something_settled_in_words_fail_the_count() -> None:
    ledger = _ledger("| D3 | c | x | docs: words |")
    verdict = judge(ledger, [Outcome("t", ("5328-D9",), PASSED), Outcome("u", (), PASSED)])
    assert verdict.problems == ["t: there is no statement 5328-D9", "u: the mark names no statement"]
    assert judge(ledger, [Outcome("t", ("5328-D3",), PASSED)]).problems == [
        "t: 5328-D3 is documentation-only in the ledger"
    ]


def test_a_statement_with_several_parts_is_open_until_each_is_shown() -> None:
    ledger = _ledger("| D1 | a | api, scheduler | test |")
    half = [Outcome("t", ("5328-D1",), PASSED, "api")]
    assert judge(ledger, half).lines[:2] == ["KEP-5328  proven 0/1  docs 0  open 1", "  open: D1(scheduler)"]
    whole = [*half, Outcome("u", ("5328-D1",), PASSED, "scheduler")]
    assert judge(ledger, whole).lines[0] == "KEP-5328  proven 1/1  docs 0  open 0"
    unsaid = [Outcome("t", ("5328-D1",), PASSED)]
    assert judge(ledger, unsaid).lines[:2] == ["KEP-5328  proven 0/1  docs 0  open 1", "  open: D1"]
    assert judge(ledger, unsaid).problems == [
        "t: 5328-D1 has several parts (api, scheduler); the mark must name one"
    ]
    wrong = judge(ledger, [Outcome("t", ("5328-D1",), PASSED, "kubelet")])
    assert wrong.problems == ["t: 5328-D1 has no part 'kubelet'; it has api, scheduler"]


_SAMPLE = """
import pytest
from tests.keps.ledger import statement

@statement("5328-D1", "5328-D2")
def test_good(): ...

@statement("5328-D7", part="api")
@statement("5328-D3")
def test_bad(): assert False

@statement("5328-D4")
def test_skipped(): pytest.skip("no")

@pytest.fixture
def broken(): raise ValueError

@statement("5328-D5")
def test_broken(broken): ...

@statement("5328-D6")
@pytest.mark.xfail(strict=True)
def test_expected_to_fail(): assert False

def test_without_a_mark(): ...
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_outcomes_are_gathered_from_a_real_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    path = tmp_path / "test_sample.py"
    path.write_text(_SAMPLE, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from tests.keps.proving import pytest_itemcollected\n")
    gathering = Gathering()
    config = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    pytest.main(["-m", "statement", *config, "-n", workers, str(path)], plugins=[gathering])
    capsys.readouterr()
    results = {ids: outcome.result for outcome in gathering.outcomes() for ids in outcome.ids}
    assert results == {
        "5328-D1": PASSED,
        "5328-D2": PASSED,
        "5328-D3": FAILED,
        "5328-D4": SKIPPED,
        "5328-D5": FAILED,
        "5328-D6": SKIPPED,
        "5328-D7": FAILED,
    }
    assert [outcome.ids for outcome in gathering.outcomes() if outcome.part == "api"] == [("5328-D7",)]
