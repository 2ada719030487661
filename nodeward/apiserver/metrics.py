"""The API server's metrics, under the names Kubernetes uses, so that dashboards and alerts carry over.

`app.py` counts every request here, so counting must cost next to nothing: requests with the same labels share a
`_Counted` of plain numbers; Prometheus' form is made when /metrics is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from nodeward.apiserver.request import Call
from nodeward.machinery.metrics import Collector, Histogram, merged, page
from nodeward.machinery.metrics import Metrics as SharedMetrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_SECONDS = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    15,
    20,
    30,
    45,
    60,
)
_BYTES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_VERBS = {"create": "POST", "update": "PUT", "delete": "DELETE", "get": "GET", "list": "LIST"}
#: Below pods and nodes; counted as connections, whatever the method was.
_CONNECTING = frozenset({"attach", "exec", "log", "portforward", "proxy"})

_KNOWN_VERBS = frozenset({*_VERBS, "patch", "watch", "deletecollection", "put", "post", "head", "options"})

_KNOWN_VERBS = frozenset({*_VERBS, "patch", "watch", "deletecollection", "put", "post", "head", "options"})

#: label values -> value
_Values = Mapping[tuple[str, ...], float]
_Key = tuple[str, str, str, str, str, bool, bool, bool, bool]


class _Counted:
    """The counts of requests with the same labels."""

    __slots__ = ("codes", "dry_run", "duration", "labels", "open", "sizes")

    def __init__(self, labels: tuple[str, ...], dry_run: str) -> None:
        self.labels = labels
        self.dry_run = dry_run
        self.codes: dict[int, int] = {}
        self.duration = Histogram(_SECONDS)
        self.sizes = Histogram(_BYTES)
        self.open = 0


class _Own:
    """The server's own metrics, beside those it includes."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect


def _is_known(call: Call) -> bool:
    """Tell whether verb, kind and subresource are ones there are, and not what a client made up."""
    if call.verb not in _KNOWN_VERBS:
        return False
    if not call.resource:
        return True
    return call.kind is not None and (
        not call.subresource or call.kind.subresource(call.subresource) is not None
    )


class ApiServerMetrics:
    """One server's metrics; nothing global. prometheus_client is imported when they are first read."""

    def __init__(self) -> None:
        self._others = SharedMetrics()
        #: how long admission plugins take, by plugin, half, operation and whether they refused
        self.admission = self._others.histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Time of admission plugins, of every sixteenth write and of every refused one.",
            (0.005, 0.025, 0.1, 0.5, 1.0, 2.5),
            ("name", "type", "operation", "rejected"),
        )
        self._components: list[Collector] = []
        self._seen: dict[_Key, _Counted] = {}
        self._reading = self._mutating = 0
        self._streamed: dict[tuple[str, str], float] = {}
        self._objects: _Values = {}
        self._storage_bytes = 0
        self._broken_objects = 0
        self._gates: _Values = {}
        self._version: tuple[str, ...] = ()

    def include(self, component: Collector) -> None:
        """Add the metrics of a component in the same process that has no /metrics of its own."""
        self._components.append(component)

    def exclude(self, component: Collector) -> None:
        """Show a component's metrics no longer: it has stopped."""
        self._components = [each for each in self._components if each is not component]

    # -- counting

    def answered(self, call: Call, code: int, seconds: float, size: int) -> None:
        """Count one answered request."""
        counted = self._of(call)
        counted.codes[code] = counted.codes.get(code, 0) + 1
        counted.duration.observe(seconds)
        counted.sizes.observe(size)

    def watching(self, call: Call, step: int) -> None:
        """Count a watch that began (+1) or ended (-1)."""
        self._of(call).open += step

    def streamed(self, subresource: str, how: str) -> None:
        """Count a WebSocket that was passed on to a kubelet, or translated for it."""
        self._streamed[subresource, how] = self._streamed.get((subresource, how), 0) + 1

    def _of(self, call: Call) -> _Counted:
        key = (
            call.verb, call.group, call.version, call.resource, call.subresource, bool(call.namespace),
            bool(call.name), call.kind is None, call.is_dry_run,
        )  # fmt: skip
        counted = self._seen.get(key)
        if counted is None:
            if not _is_known(call):
                # Clients choose unknown names; all are counted under one label, so that they cannot fill the memory.
                key = ("", "", "", "", "", False, False, True, False)
                counted = self._seen.get(key)
            if counted is None:
                counted = self._seen[key] = _Counted(self._labels(call), "All" if call.is_dry_run else "")
        return counted

    @staticmethod
    def _labels(call: Call) -> tuple[str, ...]:
        verb = "CONNECT" if call.subresource in _CONNECTING else _VERBS.get(call.verb, call.verb.upper())
        if not _is_known(call):
            return ("", "", "", "", "", "", "apiserver")
        if call.kind is None:
            return (verb, "", "", "", "", "", "apiserver")
        scope = "resource" if call.name else "namespace" if call.namespace else "cluster"
        return (verb, call.group, call.version, call.resource, call.subresource, scope, "apiserver")

    def inflight(self, reading: int, mutating: int) -> None:
        self._reading, self._mutating = reading, mutating

    # -- settings

    def set_objects(self, counts: dict[tuple[str, str], int], store_bytes: int, broken: int = 0) -> None:
        self._objects = {key: float(count) for key, count in counts.items()}
        self._storage_bytes = store_bytes
        self._broken_objects = broken

    def set_gates(self, gates: list[tuple[str, str, bool]], version: str, min_compatibility: str) -> None:
        self._gates = {(name, stage): float(is_on) for name, stage, is_on in gates}
        self._version = ("kube-apiserver", version, version, min_compatibility)

    # -- showing

    def collect(self) -> Iterable[Metric]:
        """Return all metrics, those of included components too, in Prometheus' form."""
        return merged((_Own(self._collect), *self._components))

    def _collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        rest = _LABELS[1:]
        requests = CounterMetricFamily(
            "apiserver_request_total",
            "Requests by verb, resource and code.",
            labels=("verb", "dry_run", *rest, "code"),
        )
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Time to answer, by verb and resource; watches are not counted.",
            labels=("verb", "dry_run", *rest),
        )
        sizes = HistogramMetricFamily(
            "apiserver_response_sizes", "Bytes of answers to lists and gets.", labels=_LABELS
        )
        watches = GaugeMetricFamily(
            "apiserver_longrunning_requests", "Watches that are open now.", labels=_LABELS
        )
        for counted in self._seen.values():
            verb, *others = counted.labels
            for code, count in counted.codes.items():
                requests.add_metric((verb, counted.dry_run, *others, str(code)), count)
            if verb == "WATCH":
                watches.add_metric(counted.labels, counted.open)
                continue
            timed = counted.duration
            durations.add_metric((verb, counted.dry_run, *others), timed.buckets(), timed.total)
            if verb in ("GET", "LIST"):
                sizes.add_metric(counted.labels, counted.sizes.buckets(), counted.sizes.total)
        yield from (requests, durations, sizes, watches)
        streams = CounterMetricFamily(
            "apiserver_websocket_streaming_requests_total",
            "WebSockets for exec, attach and port-forward, by whether the kubelet speaks them.",
            labels=("subresource", "proxy_type"),
        )
        for what_and_how, total in self._streamed.items():
            streams.add_metric(what_and_how, total)
        yield streams
        yield from self._others.collect()
        for name, text, labels, values in self._gauges():
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for key, value in values.items():
                gauge.add_metric(key, value)
            yield gauge

    def _gauges(self) -> Iterator[tuple[str, str, tuple[str, ...], _Values]]:
        inflight: _Values = {("readOnly",): float(self._reading), ("mutating",): float(self._mutating)}
        text = "Requests being answered now, by kind."
        yield "apiserver_current_inflight_requests", text, ("request_kind",), inflight
        yield (
            "apiserver_resource_objects",
            "Stored objects by resource.",
            ("group", "resource"),
            self._objects,
        )
        storage: _Values = {("",): float(self._storage_bytes)}
        yield "apiserver_storage_size_bytes", "Bytes the store holds.", ("storage_cluster_id",), storage
        broken: _Values = {(): float(self._broken_objects)}
        yield "nodeward_storage_broken_objects", "Stored objects that are broken and not served.", (), broken
        yield "kubernetes_feature_enabled", "Feature gates, 1 for on.", ("name", "stage"), self._gates
        versions = ("component", "binary", "emulation", "min_compat")
        yield "version_info", "Versions of this component.", versions, {self._version: 1.0}

    def text(self) -> bytes:
        """Return the text of /metrics."""
        return page(self)
