"""After the tidy tests: which modules are growing. Nothing fails because of it."""

from __future__ import annotations

import pytest

from tests.tidy.repository import modules
from tests.tidy.test_modules import SOFT_LINES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = terminalreporter.getreports("passed")
    if not any(report.nodeid.startswith("tests/tidy/") for report in passed):
        return
    growing = sorted(((each.lines, each.path) for each in modules() if each.lines > SOFT_LINES), reverse=True)
    if growing:
        terminalreporter.write_line(f"modules past {SOFT_LINES} lines, worth a look before they grow:")
        for lines, path in growing:
            terminalreporter.write_line(f"  {lines:4} {path}")
