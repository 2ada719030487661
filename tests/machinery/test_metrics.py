"""Metrics: counted cheaply, shown as Prometheus reads them."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.metrics import Metrics, exponential, merged
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.transport import Request


def get(pages: HealthPages, target: str) -> Answer:
    path, _, query = target.partition("?")
    return asyncio.run(pages.handle(Request("GET", path, query), Peer("")))


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
    assert get(pages, "/healthz?quiet").whole() == b"ok"
    for query in ("verbose", "verbose=", "verbose=1&other=2"):
        shown = get(pages, f"/readyz?{query}").whole()
        assert shown == b"[+]ping ok\n[+]informers ok\nreadyz check passed\n"
    is_well = False
    answer = get(pages, "/healthz")
    assert answer.status == 500
    assert b"[-]informers failed" in answer.whole()
    assert get(pages, "/livez/informers").status == 500
    assert get(pages, "/livez/ping").status == 200
    assert get(pages, "/elsewhere").status == 404


def test_components_of_one_process_are_shown_as_if_they_counted_together() -> None:
    one, other = Metrics(), Metrics()
    one.counter("adds_total", "Things.", ("name",)).inc("a")
    other.counter("adds_total", "Things.", ("name",)).inc("a", by=2)
    other.counter("adds_total", "Things.", ("name",)).inc("b")
    one.gauge("on", "Whether.", ("name",)).set(1, "a")
    other.gauge("on", "Whether.", ("name",)).set(1, "a")
    one.histogram("took_seconds", "How long.", (1.0,)).observe(0.5)
    other.histogram("took_seconds", "How long.", (1.0,)).observe(2)
    families = {
        family.name: [(sample.name, sample.labels, sample.value) for sample in family.samples]
        for family in merged((one, other))
    }
    assert families == {
        "adds": [("adds_total", {"name": "a"}, 3.0), ("adds_total", {"name": "b"}, 1.0)],
        "on": [("on", {"name": "a"}, 1.0)],
        "took_seconds": [
            ("took_seconds_bucket", {"le": "1.0"}, 1.0),
            ("took_seconds_bucket", {"le": "+Inf"}, 2.0),
            ("took_seconds_count", {}, 2.0),
            ("took_seconds_sum", {}, 2.5),
        ],
    }


def test_one_name_is_one_kind_of_metric_in_all_components() -> None:
    one, other = Metrics(), Metrics()
    one.gauge("b", "How many.")
    other.histogram("b", "How long.", (1.0,))
    with pytest.raises(InvariantBroken, match="b is the same kind"):
        merged((one, other))
