"""A pytest plugin: run only the tests marked with one of the statements given by --statements. Used by `runner.py`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--statements", default="", help="ids of statements, separated by commas")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(str(config.getoption("--statements")).split(","))
    kept = [
        item
        for item in items
        if any(wanted.intersection(mark.args) for mark in item.iter_markers("statement"))
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
