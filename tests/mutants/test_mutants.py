"""The tables fit the code, and the runner tells a rule that is guarded from one that is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.keps.ledger import ROOT, read_ledger
from tests.mutants.mutant import Mutant, TableError
from tests.mutants.runner import BROKEN, KILLED, SURVIVED, Result, run_all
from tests.mutants.tables import TABLES, chosen

_RULE = """
def fits(asked: int, free: int) -> bool:
    return asked <= free


def label() -> str:
    return "fits"
"""

_TESTS = """
import pytest
from nodeward.rule import fits, label

statement = pytest.mark.statement


@statement("5328-D1")
def test_a_pod_that_fits_exactly_fits():
    assert fits(2, 2)


@statement("5328-D2")
def test_there_is_a_label():
    assert label()


def test_that_carries_no_mark_is_not_run():
    assert label() == "fits"
"""


def test_every_row_of_every_table_fits_the_code_and_names_statements_of_the_ledger() -> None:
    ledger = read_ledger()
    for mutant in chosen([]):
        assert mutant.applied_to(ROOT)
        assert mutant.statements
        assert all(each in ledger for each in mutant.statements), mutant.name


def test_mutants_are_chosen_by_name_and_by_kep() -> None:
    for kep, table in TABLES.items():
        assert tuple(chosen([kep])) == table
        assert all(chosen([mutant.name]) == [mutant] for mutant in table[:1])
    with pytest.raises(TableError, match="there is no mutant and no KEP 'nonsense'"):
        chosen(["nonsense"])


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A repository with one rule, guarded by one test, and one that its test does not look at closely."""
    root = tmp_path / "sample"
    for name in ("nodeward/__init__.py", "tests/__init__.py", "tests/mutants/__init__.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("", encoding="utf-8")
    shutil.copyfile(ROOT / "tests/mutants/selecting.py", root / "tests/mutants/selecting.py")
    shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
    (root / "nodeward/rule.py").write_text(_RULE, encoding="utf-8")
    (root / "tests/test_rule.py").write_text(_TESTS, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def _mutant(name: str, text: str, broken: str, statement: str) -> Mutant:
    return Mutant(name, "nodeward/rule.py", text, broken, (statement,))


def test_a_broken_rule_is_killed_survives_or_does_not_run(sample: Path) -> None:
    mutants = [
        _mutant("guarded", "asked <= free", "asked < free", "5328-D1"),
        _mutant("unguarded", 'return "fits"', 'return "does not"', "5328-D2"),
        _mutant("unreadable", "def fits", "def def fits", "5328-D1"),
    ]
    seen: list[Result] = []
    results = run_all(mutants, 1, 60, seen.append, sample)
    assert [result.word for result in results] == [KILLED, SURVIVED, BROKEN]
    assert "test_a_pod_that_fits_exactly_fits" in results[0].detail
    assert seen == results
    assert (sample / "nodeward/rule.py").read_text(encoding="utf-8") == _RULE


def test_a_hang_is_noticed_by_its_time(sample: Path) -> None:
    loop = _mutant("loop", "return asked <= free", "while True: pass", "5328-D1")
    [result] = run_all([loop], 1, 5, lambda _: None, sample)
    assert (result.word, result.detail) == (KILLED, "the tests hung for 5 s")


@pytest.mark.parametrize(
    ("mutant", "complaint"),
    [
        (_mutant("a", "absent", "x", "5328-D1"), "a: the text stands 0 times in nodeward/rule.py"),
        (_mutant("b", "fits", "x", "5328-D1"), "b: the text stands 2 times"),
        (_mutant("c", "asked <= free", "asked <= free", "5328-D1"), "c: the broken text is the text itself"),
        (Mutant("d", "nodeward/none.py", "x", "y", ("5328-D1",)), "d: there is no file nodeward/none.py"),
        (_mutant("e", "asked <= free", "free", "5328-D9"), "no test is marked with 5328-D9"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error(sample: Path, mutant: Mutant, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        run_all([mutant], 1, 60, lambda _: None, sample)


def test_tests_that_fail_unbroken_are_an_error(sample: Path) -> None:
    (sample / "nodeward/rule.py").write_text(_RULE.replace("<=", "<"), encoding="utf-8")
    with pytest.raises(TableError, match="do not pass unbroken"):
        run_all([_mutant("late", "asked < free", "free", "5328-D1")], 1, 60, lambda _: None, sample)
