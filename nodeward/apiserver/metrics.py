"""What the API server counts, under the names Kubernetes uses, so that dashboards and alerts carry over."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nodeward.apiserver.request import Call

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


class Metrics:
    """One server's counters; nothing global."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "apiserver_request_total",
            "Requests by verb, resource and code.",
            ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "apiserver_request_duration_seconds",
            "Time to answer, by verb and resource; watches are not counted.",
            (*_LABELS[:1], "dry_run", *_LABELS[1:]),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._sizes = Histogram(
            "apiserver_response_sizes",
            "Bytes of answers to lists and gets.",
            _LABELS,
            buckets=_BYTES,
            registry=self.registry,
        )
        self._long_running = Gauge(
            "apiserver_longrunning_requests",
            "Watches that are open now.",
            _LABELS,
            registry=self.registry,
        )
        self._inflight = Gauge(
            "apiserver_current_inflight_requests",
            "Requests being answered now, by kind.",
            ("request_kind",),
            registry=self.registry,
        )
        self._objects = Gauge(
            "apiserver_resource_objects",
            "Stored objects by resource.",
            ("group", "resource"),
            registry=self.registry,
        )
        self._storage = Gauge(
            "apiserver_storage_size_bytes",
            "Bytes the store holds.",
            ("storage_cluster_id",),
            registry=self.registry,
        )
        self._gates = Gauge(
            "kubernetes_feature_enabled",
            "Feature gates, 1 for on.",
            ("name", "stage"),
            registry=self.registry,
        )
        self._version = Gauge(
            "version_info",
            "Versions of this component.",
            ("component", "binary", "emulation", "min_compat"),
            registry=self.registry,
        )
        self.inflight_reading = self._inflight.labels("readOnly")
        self.inflight_mutating = self._inflight.labels("mutating")
        # Children are looked up by what tells requests apart; finding one must not cost more than counting it.
        self._seen: dict[tuple[str, str, str, str, bool, bool, int], _Counted] = {}

    def answered(self, call: Call, code: int, seconds: float, size: int) -> None:
        """One request was answered."""
        key = (
            call.verb,
            call.group,
            call.resource,
            call.subresource,
            bool(call.namespace),
            call.is_dry_run,
            code,
        )
        counted = self._seen.get(key)
        if counted is None:
            counted = self._seen[key] = self._count(call, code)
        counted.total.inc()
        if counted.duration is not None:
            counted.duration.observe(seconds)
        if counted.sizes is not None:
            counted.sizes.observe(size)

    def _count(self, call: Call, code: int) -> _Counted:
        labels, dry_run = self._labels(call), "All" if call.is_dry_run else ""
        verb, *rest = labels
        total = self._requests.labels(verb, dry_run, *rest, str(code))
        duration = None if verb == "WATCH" else self._duration.labels(verb, dry_run, *rest)
        sizes = self._sizes.labels(*labels) if verb in ("GET", "LIST") else None
        return _Counted(total, duration, sizes)

    @staticmethod
    def _labels(call: Call) -> tuple[str, ...]:
        verb = {"create": "POST", "update": "PUT", "deletecollection": "DELETECOLLECTION"}.get(
            call.verb, call.verb
        )
        scope = (
            ""
            if not call.resource
            else "resource"
            if call.name
            else "namespace"
            if call.namespace
            else "cluster"
        )
        known = call.kind is not None or not call.resource
        resource = call.resource if known else ""
        return (
            verb.upper(),
            call.group if known else "",
            call.version,
            resource,
            call.subresource if known else "",
            scope,
            "apiserver",
        )

    def watching(self, call: Call, step: int) -> None:
        """A watch began (+1) or ended (-1)."""
        self._long_running.labels(*self._labels(call)).inc(step)

    def set_objects(self, counts: dict[tuple[str, str], int], store_bytes: int) -> None:
        for (group, resource), count in counts.items():
            self._objects.labels(group, resource).set(count)
        self._storage.labels("").set(store_bytes)

    def set_gates(self, gates: list[tuple[str, str, bool]], version: str, min_compatibility: str) -> None:
        for name, stage, is_on in gates:
            self._gates.labels(name, stage).set(1 if is_on else 0)
        self._version.labels("kube-apiserver", version, version, min_compatibility).set(1)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Counted:
    """Where one kind of request is counted."""

    __slots__ = ("duration", "sizes", "total")

    def __init__(self, total: Counter, duration: Histogram | None, sizes: Histogram | None) -> None:
        self.total = total
        self.duration = duration
        self.sizes = sizes
