"""The count of proven statements counts what is there."""

from __future__ import annotations

from pathlib import Path

from tests.keps.__main__ import marks, report


def test_marks_are_read_from_functions_and_classes_whatever_they_are_called_through() -> None:
    source = """
@statement("6122-31")
def test_a(): ...
class TestB:
    @keps.statement("5328-D1", "5328-D2")
    async def test_c(self): ...
    @other("5328-D9")
    def test_d(self): ...
"""
    assert sorted(marks(source)) == ["5328-D1", "5328-D2", "6122-31"]


def test_a_kep_without_a_ledger_is_said_to_be_open(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text('@statement("6122-31")\ndef test_a(): ...\n')
    (tmp_path / "docs" / "keps").mkdir(parents=True)
    (tmp_path / "docs" / "keps" / "kep-6122.md").write_text("")
    lines = {line[4:8]: line for line in report(tmp_path).splitlines()}
    assert "  1 statements marked" in lines["6122"]
    assert "no ledger" not in lines["6122"]
    assert "  0 statements marked" in lines["5328"]
    assert "no ledger yet: all statements open" in lines["5328"]
