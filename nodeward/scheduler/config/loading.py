"""A `KubeSchedulerConfiguration` file, read whole and checked whole: settings, or all that is wrong with it.

Only `kubescheduler.config.k8s.io/v1` is read. Extenders are not supported and refused rather than passed over. What
only tunes the real kube-scheduler (parallelism, how many nodes to score, profiling, rates of requests) is checked and
has no effect here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.base.fielderror import invalid
from nodeward.base.fieldpath import ROOT
from nodeward.base.problems import Problems
from nodeward.base.yaml_text import YamlDocument, called, documents
from nodeward.features.gates import Gates
from nodeward.scheduler.config.profiles import API_VERSION, Known, read_profiles
from nodeward.scheduler.config.reading import LARGEST_INT64, ConfigFields
from nodeward.scheduler.settings import SchedulerSettings

KIND: Final = "KubeSchedulerConfiguration"
_FIELDS: Final = (
    "apiVersion",
    "kind",
    "parallelism",
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
    "delayCacheUntilActive",
)
_ELECTION: Final = (
    "leaderElect",
    "leaseDuration",
    "renewDeadline",
    "retryPeriod",
    "resourceLock",
    "resourceName",
    "resourceNamespace",
)
_CONNECTION: Final = ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")


def load_scheduler_config(path: str, gates: Gates) -> SchedulerSettings:
    """What the file says; `ConfigError` with everything that is wrong with it."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return read_scheduler_config(text, path, gates)


def read_scheduler_config(text: bytes, shown: str, gates: Gates) -> SchedulerSettings:
    """The same for a text that was read already; `shown` is what to call it."""
    found = list(documents(text, shown))
    if len(found) != 1:
        count = f"{len(found)} documents" if found else "nothing"
        raise ConfigError(f"{shown}: {count} in it, want one {KIND}")
    document = found[0]
    _check_kind(document)
    problems = Problems(document)
    file = ConfigFields(document.tree, ROOT, problems, _FIELDS)
    settings = _settings(file, gates)
    problems.settle()
    return settings


def _check_kind(document: YamlDocument) -> None:
    if not isinstance(document.tree, dict):
        raise document.fault("", f"want a {KIND}, got {called(document.tree)}")
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        value = document.tree.get(name)
        if value is None:
            raise document.fault("", f"{name} is missing, want {wanted}")
        if value != wanted:
            raise document.fault(name, f"{value!r} is not supported, want {wanted}")


def _settings(file: ConfigFields, gates: Gates) -> SchedulerSettings:
    problems = file.problems
    for path, _ in file.items("extenders"):
        problems.say(
            path, "extenders are not supported; write a plugin, or run the extender's scheduler beside this"
        )
        break
    for name in ("enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"):
        file.truth(name)
    positive = "must be greater than 0"
    initial = file.whole("podInitialBackoffSeconds", 1, low=1, high=LARGEST_INT64, must=positive)
    longest = file.whole("podMaxBackoffSeconds", 10, low=1, high=LARGEST_INT64, must=positive)
    if longest < initial:
        at = file.at("podMaxBackoffSeconds")
        problems.add(invalid(at, longest, f"must be at least podInitialBackoffSeconds, which is {initial}"))
    election = file.part("leaderElection", _ELECTION)
    lease = election.seconds("leaseDuration", 15.0)
    renew = election.seconds("renewDeadline", 10.0)
    retry = election.seconds("retryPeriod", 2.0)
    elects = election.truth("leaderElect", default=True)
    election.text("resourceLock", "leases", among=("leases",) if elects else ())
    if elects:
        _check_election(election, {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry})
    return SchedulerSettings(
        profiles=read_profiles(file, Known(gates)),
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
        leader_elect=elects,
        lease_duration_seconds=lease,
        renew_deadline_seconds=renew,
        retry_period_seconds=retry,
        resource_name=election.text("resourceName", "kube-scheduler") or "kube-scheduler",
        resource_namespace=election.text("resourceNamespace", "kube-system") or "kube-system",
        parallelism=file.whole("parallelism", 16, low=1, must="should be an integer value greater than zero"),
        percentage_of_nodes_to_score=file.whole(
            "percentageOfNodesToScore", 0, low=0, high=100, must="not in valid range [0-100]"
        ),
        kubeconfig=_connection(file.part("clientConnection", _CONNECTION)),
    )


def _check_election(election: ConfigFields, spans: dict[str, float]) -> None:
    for name, span in spans.items():
        if span <= 0:
            election.wrong(name, election.tree.get(name), "must be greater than zero")
    if spans["leaseDuration"] <= spans["renewDeadline"]:
        said = f"must be greater than renewDeadline, which is {spans['renewDeadline']:g}s"
        election.wrong("leaseDuration", f"{spans['leaseDuration']:g}s", said)


def _connection(connection: ConfigFields) -> str:
    """The kubeconfig; what else stands there is only checked. Everything is JSON, and no rate is held to."""
    for name in ("acceptContentTypes", "contentType"):
        connection.text(name)
    connection.number("qps", 50.0)
    connection.whole("burst", 100, low=0, must="must be non-negative")
    return connection.text("kubeconfig")
