"""One server for all hostile tests. After each of them it must live on, and must not have met anything unforeseen."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.hostile.wire import Server


@pytest.fixture(scope="session")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("hostile"))
    yield server
    server.stop()


@pytest.fixture
def server(running_server: Server, caplog: pytest.LogCaptureFixture) -> Iterator[Server]:
    """The server; afterwards it still answers, and its log holds no error."""
    yield running_server
    alive = running_server.ask("GET", "/livez")
    assert (alive.status, alive.body) == (200, b"ok")
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not errors, [record.getMessage() for record in errors]
