"""One API server and its kubelets for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubelet.server.serving import Serving, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("serving")) as running:
        yield running
