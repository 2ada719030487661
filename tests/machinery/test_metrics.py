"""Metrics: counted cheaply, shown as Prometheus reads them."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.metrics import Metrics, exponential
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.transport import Request


def get(pages: HealthPages, path: str) -> Answer:
    return asyncio.run(pages.handle(Request("GET", path), Peer("")))


def test_a_page_shows_what_was_counted() -> None:
    metrics = Metrics()
    metrics.counter("a_total", "Things.", ("kind",)).inc("x")
    metrics.counter("a_total", "Things.", ("kind",)).inc("x", by=2)
    metrics.gauge("b", "How many.", look=lambda: {(): 7.0})
    metrics.histogram("c_seconds", "How long.", exponential(1, 2, 3)).observe(3)
    shown = metrics.text().decode()
    assert 'a_total{kind="x"} 3.0' in shown
    assert "b 7.0" in shown
    assert 'c_seconds_bucket{le="2.0"} 0.0' in shown
    assert 'c_seconds_bucket{le="4.0"} 1.0' in shown


def test_one_name_is_one_kind_of_metric() -> None:
    metrics = Metrics()
    metrics.gauge("b", "How many.")
    with pytest.raises(InvariantBroken, match="b was made as another kind"):
        metrics.counter("b", "How many.")


def test_health_is_ok_while_every_check_holds_and_names_the_one_that_does_not() -> None:
    is_well = True
    pages = HealthPages(Metrics(), {"informers": lambda: is_well})
    assert get(pages, "/healthz").whole() == b"ok"
    assert b"[+]informers ok" in get(pages, "/readyz?verbose").whole()
    is_well = False
    answer = get(pages, "/healthz")
    assert answer.status == 500
    assert b"[-]informers failed" in answer.whole()
    assert get(pages, "/livez/informers").status == 500
    assert get(pages, "/livez/ping").status == 200
    assert get(pages, "/elsewhere").status == 404
