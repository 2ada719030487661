"""The environment of a reporter."""

from __future__ import annotations

import pytest

from nodeward.base.duration import MINUTE_NS, SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.reporting.settings import ReporterSettings, read_environment

SEED = {
    "NODE_NAME": "n1",
    "CONDITION_TYPE": "network.kubernetes.io/cni-configured",
    "CHECK_POINT": "http://localhost:8080/healthz",
    "POLL_INTERVAL": "30s",
    "REPORT_STRATEGY": "ReportOnSuccessAndTerminate",
}
CONTROLLER = {
    "NODE_NAME": "n1",
    "CONDITION_TYPE": "example.com/Agent",
    "CHECK_ENDPOINT": "https://localhost/ok?x=1",
    "CHECK_INTERVAL": "10s",
    "HEARTBEAT_PERIOD": "5m",
    "IMPERSONATE_NODE": "true",
    "METRICS_BIND_ADDRESS": ":9445",
}


def test_the_names_of_the_proposal_are_understood() -> None:
    assert read_environment(SEED) == ReporterSettings(
        "n1",
        "network.kubernetes.io/cni-configured",
        "http://localhost:8080/healthz",
        30 * SECOND_NS,
        strategy="ReportOnSuccessAndTerminate",
    )


def test_the_names_of_node_readiness_controller_are_understood() -> None:
    assert read_environment(CONTROLLER) == ReporterSettings(
        "n1",
        "example.com/Agent",
        "https://localhost/ok?x=1",
        10 * SECOND_NS,
        5 * MINUTE_NS,
        impersonates_node=True,
        metrics_address=":9445",
    )


def test_both_names_may_say_the_same() -> None:
    both = SEED | {"CHECK_ENDPOINT": SEED["CHECK_POINT"], "METRICS_BIND_ADDRESS": "0"}
    assert read_environment(both).metrics_address == ""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"NODE_NAME": ""}, "NODE_NAME is not set"),
        ({"NODE_NAME": "No Node"}, 'NODE_NAME="No Node": '),
        ({"CHECK_POINT": ""}, "CHECK_ENDPOINT or CHECK_POINT is not set"),
        ({"CHECK_POINT": "localhost:8080"}, 'CHECK_POINT="localhost:8080": must be http or https'),
        ({"CHECK_POINT": "http://:80/"}, "there is no host in it"),
        ({"CHECK_POINT": "http://a:port/"}, 'CHECK_POINT="http://a:port/": Port could not be cast'),
        ({"CHECK_ENDPOINT": "http://other/"}, "are two names of one thing"),
        ({"POLL_INTERVAL": "5"}, 'POLL_INTERVAL="5": time: missing unit in duration "5"'),
        ({"POLL_INTERVAL": "10ms"}, "must be at least 1s"),
        ({"HEARTBEAT_PERIOD": "-1s"}, "must be at least 0s"),
        ({"REPORT_STRATEGY": "Never"}, "want ReportContinuously or ReportOnSuccessAndTerminate"),
        ({"IMPERSONATE_NODE": "maybe"}, "want true or false"),
        ({"METRICS_BIND_ADDRESS": "everywhere"}, "want host:port or :port"),
        ({"CONDITION_TYPE": "a b"}, 'CONDITION_TYPE="a b": '),
    ],
)
def test_a_wrong_variable_is_named_with_what_would_be_right(change: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_environment(SEED | change)
    assert what in str(caught.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_environment({"POLL_INTERVAL": "x"})
    assert len(str(caught.value).strip().splitlines()) == 4
