"""What a reporter is told by its environment: the names of the proposal's side-car and of node-readiness-controller's.

Two names of one thing may both be given if they say the same. Whatever is wrong is told at once, each with the
variable, its value and what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nodeward.base.duration import SECOND_NS, DurationError, parse_duration
from nodeward.base.errors import ConfigError
from nodeward.base.fielderror import quote
from nodeward.rules.names import dns_subdomain, label_key_faults

FOREVER: Final = "ReportContinuously"
UNTIL_SUCCESS: Final = "ReportOnSuccessAndTerminate"
STRATEGIES: Final = (FOREVER, UNTIL_SUCCESS)
_INTERVAL: Final = "30s"
_TRUE: Final = ("1", "t", "true", "yes")
_FALSE: Final = ("", "0", "f", "false", "no")


@dataclass(frozen=True, slots=True)
class ReporterSettings:
    """One reporter."""

    node: str
    condition: str
    #: http or https
    endpoint: str
    interval_ns: int = 30 * SECOND_NS
    #: 0: never write what has not changed
    heartbeat_ns: int = 0
    strategy: str = FOREVER
    #: act as the node itself, where that is allowed
    impersonates_node: bool = False
    #: an endpoint that cannot be reached says nothing about the node: report Unknown, and read what is stored
    is_off_node: bool = False
    #: host:port for /metrics and health; empty: none
    metrics_address: str = ""


class _Variables:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.faults: list[str] = []

    def text(self, *names: str, default: str | None = None) -> str:
        """The value of the first name that is set; `default` None: one of them must be."""
        given = {name: self._environment[name] for name in names if self._environment.get(name)}
        values = list(dict.fromkeys(given.values()))
        if len(values) > 1:
            both = " and ".join(f"{name}={quote(value)}" for name, value in given.items())
            self.faults.append(f"{both} are two names of one thing; give one of them")
        if not values and default is None:
            self.faults.append(f"{' or '.join(names)} is not set")
        return values[0] if values else default or ""

    def wrong(self, name: str, value: str, what: str) -> None:
        shown = next((each for each in name.split("|") if self._environment.get(each)), name.split("|")[0])
        self.faults.append(f"{shown}={quote(value)}: {what}")

    def span(self, *names: str, default: str, least_ns: int) -> int:
        value = self.text(*names, default=default)
        try:
            span = parse_duration(value)
        except DurationError as error:
            self.wrong("|".join(names), value, f"{error}; want a span of time such as 30s")
            return least_ns
        if span < least_ns:
            self.wrong("|".join(names), value, f"must be at least {least_ns // SECOND_NS}s")
        return span

    def truth(self, name: str) -> bool:
        value = self.text(name, default="").lower()
        if value not in (*_TRUE, *_FALSE):
            self.wrong(name, value, "want true or false")
        return value in _TRUE


def read_environment(environment: Mapping[str, str]) -> ReporterSettings:
    """The settings in an environment, or a `ConfigError` that tells all that is wrong with them."""
    variables = _Variables(environment)
    node = variables.text("NODE_NAME")
    for fault in dns_subdomain(node) if node else ():
        variables.wrong("NODE_NAME", node, fault)
    condition = variables.text("CONDITION_TYPE")
    for fault in label_key_faults(condition) if condition else ():
        variables.wrong("CONDITION_TYPE", condition, fault)
    endpoint = variables.text("CHECK_ENDPOINT", "CHECK_POINT")
    if endpoint and (fault := _endpoint_fault(endpoint)):
        variables.wrong("CHECK_ENDPOINT|CHECK_POINT", endpoint, fault)
    strategy = variables.text("REPORT_STRATEGY", default=FOREVER)
    if strategy not in STRATEGIES:
        variables.wrong("REPORT_STRATEGY", strategy, f"want {' or '.join(STRATEGIES)}")
    metrics = variables.text("METRICS_BIND_ADDRESS", default="")
    if metrics not in ("", "0") and not metrics.rpartition(":")[2].isdecimal():
        variables.wrong("METRICS_BIND_ADDRESS", metrics, "want host:port or :port, such as :9445")
    settings = ReporterSettings(
        node,
        condition,
        endpoint,
        variables.span("CHECK_INTERVAL", "POLL_INTERVAL", default=_INTERVAL, least_ns=SECOND_NS),
        variables.span("HEARTBEAT_PERIOD", default="0s", least_ns=0),
        strategy,
        variables.truth("IMPERSONATE_NODE"),
        variables.truth("OFF_NODE"),
        "" if metrics == "0" else metrics,
    )
    if variables.faults:
        told = variables.faults
        raise ConfigError(told[0] if len(told) == 1 else "".join(f"\n  {each}" for each in told))
    return settings


def _endpoint_fault(endpoint: str) -> str:
    want = "want a URL such as http://localhost:8080/healthz"
    try:
        parts = urlsplit(endpoint)
        parts.port  # noqa: B018  (reading it is the check)
    except ValueError as error:
        return f"{error}; {want}"
    if parts.scheme not in ("http", "https"):
        return f"must be http or https; {want}"
    return "" if parts.hostname else f"there is no host in it; {want}"
