"""Counters, gauges and histograms of one component; nothing global.

Counting is plain arithmetic on dictionaries and lists, because it happens in every hot loop; prometheus_client is
imported by the first who looks at the page. A metric is made once, with the names of its labels, and counted with
their values in the same order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from nodeward.base.invariant import InvariantBroken, invariant

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family


V = TypeVar("V")


class Histogram:
    """Numbers sorted into buckets."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Return cumulative buckets, as Prometheus wants them."""
        seen, found = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            found.append(("+Inf" if bound == float("inf") else str(float(bound)), float(seen)))
        return found


#: What a metric is at the moment, by the values of its labels.
Look: TypeAlias = Callable[[], Mapping[tuple[str, ...], float]]


class Counter:
    """Numbers that only grow, by label values; counted here, or computed at scrape time."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        look: Look | None = None,
    ) -> None:
        self.name, self.text, self.labels = name, text, labels
        self._look = look
        self._values: dict[tuple[str, ...], float] = {}

    def inc(self, *values: str, by: float = 1) -> None:
        self._values[values] = self._values.get(values, 0) + by

    def forget(self, label: str, value: str) -> None:
        """Drop the counts for this value of a label, because what it names is gone."""
        _forget(self._values, self.labels.index(label), value)

    def value(self, *values: str) -> float:
        return self.values.get(values, 0)

    @property
    def values(self) -> Mapping[tuple[str, ...], float]:
        return self._values if self._look is None else self._look()


class Gauge:
    """Numbers that go up and down, by label values; set here, or computed at scrape time."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        look: Look | None = None,
    ) -> None:
        self.name, self.text, self.labels = name, text, labels
        self._looks = [] if look is None else [look]
        self._values: dict[tuple[str, ...], float] = {}

    def also(self, look: Look) -> None:
        """Add what `look` says to what others say: several kubelets of one process count together."""
        self._looks.append(look)

    def set(self, value: float, *values: str) -> None:
        self._values[values] = value

    def remove(self, *values: str) -> None:
        self._values.pop(values, None)

    def forget(self, label: str, value: str) -> None:
        """Drop the values for this value of a label, because what it names is gone."""
        _forget(self._values, self.labels.index(label), value)

    @property
    def values(self) -> Mapping[tuple[str, ...], float]:
        if not self._looks:
            return self._values
        total: dict[tuple[str, ...], float] = {}
        for look in self._looks:
            for values, value in look().items():
                total[values] = total.get(values, 0) + value
        return total


class Histograms:
    """One histogram per combination of labels."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        bounds: tuple[float, ...],
        values: dict[tuple[str, ...], Histogram] | None = None,
    ) -> None:
        """`values` are those of other histograms, if these are to be shown under a second name."""
        self.name, self.text, self.labels, self.bounds = name, text, labels, bounds
        self.values: Final[dict[tuple[str, ...], Histogram]] = {} if values is None else values

    def of(self, *values: str) -> Histogram:
        """Return the histogram for these labels, for callers that observe often."""
        found = self.values.get(values)
        if found is None:
            found = self.values[values] = Histogram(self.bounds)
        return found

    def observe(self, value: float, *values: str) -> None:
        self.of(*values).observe(value)

    def forget(self, label: str, value: str) -> None:
        """Drop the observations for this value of a label, because what it names is gone."""
        _forget(self.values, self.labels.index(label), value)


def _forget(kept: dict[tuple[str, ...], V], place: int, value: str) -> None:
    for values in [values for values in kept if values[place] == value]:
        del kept[values]


class Metrics:
    """All metrics of a component, and the page that shows them."""

    def __init__(self) -> None:
        self._all: dict[str, Counter | Gauge | Histograms] = {}

    def counter(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        look: Look | None = None,
    ) -> Counter:
        """Return the counter of that name; made when first asked for, so that parts of a component may share it."""
        found = self._all.setdefault(name, Counter(name, text, labels, look))
        if not isinstance(found, Counter):
            raise InvariantBroken(f"{name} was made as another kind of metric")
        return found

    def gauge(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        look: Look | None = None,
    ) -> Gauge:
        """Return the gauge of that name; a second `look` is added to the first."""
        found = self._all.get(name)
        if found is None:
            found = self._all[name] = Gauge(name, text, labels, look)
        elif not isinstance(found, Gauge):
            raise InvariantBroken(f"{name} was made as another kind of metric")
        elif look is not None:
            found.also(look)
        return found

    def histogram(
        self, name: str, text: str, bounds: tuple[float, ...], labels: tuple[str, ...] = ()
    ) -> Histograms:
        found = self._all.setdefault(name, Histograms(name, text, labels, bounds))
        if not isinstance(found, Histograms):
            raise InvariantBroken(f"{name} was made as another kind of metric")
        return found

    def same_histogram(self, name: str, text: str, first: Histograms) -> None:
        """Show histograms under a second name, too; they are observed under the first."""
        self._all[name] = Histograms(name, text, first.labels, first.bounds, first.values)

    def collect(self) -> Iterator[Family]:
        """Return what was counted, in Prometheus' form."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for metric in self._all.values():
            if isinstance(metric, Histograms):
                timed = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
                for values, histogram in metric.values.items():
                    timed.add_metric(values, histogram.buckets(), histogram.total)
                yield timed
            else:
                # The library would add _total to the name of a counter that has none; a few of Kubernetes' have none.
                is_counter = isinstance(metric, Counter) and metric.name.endswith("_total")
                family = CounterMetricFamily if is_counter else GaugeMetricFamily
                counted = family(metric.name, metric.text, labels=metric.labels)
                for values, value in metric.values.items():
                    counted.add_metric(values, value)
                yield counted

    def text(self) -> bytes:
        """Return the page /metrics shows."""
        return page(self)


class Collector(Protocol):
    """Whoever has metrics in Prometheus' form."""

    def collect(self) -> Iterable[Family]: ...


def merged(collectors: Iterable[Collector]) -> list[Family]:
    """Return the families of components that run in one process, each once, as if the components counted together.

    Where several components have the same family and the same labels, counts are added up and the first gauge stands.
    """
    families: dict[str, Family] = {}
    for collector in collectors:
        for family in collector.collect():
            known = families.setdefault(family.name, family)
            if known is not family:
                _merge(known, family)
    return list(families.values())


def _merge(known: Family, other: Family) -> None:
    invariant(known.type == other.type, f"{known.name} is the same kind of metric everywhere")
    places = {
        (sample.name, tuple(sorted(sample.labels.items()))): place
        for place, sample in enumerate(known.samples)
    }
    for sample in other.samples:
        place = places.get((sample.name, tuple(sorted(sample.labels.items()))))
        if place is None:
            known.samples.append(sample)
        elif known.type != "gauge":
            before = known.samples[place]
            known.samples[place] = before._replace(value=before.value + sample.value)


def page(collector: object) -> bytes:
    """Return what a collector has, as text."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(collector)  # type: ignore[arg-type]
    return generate_latest(registry)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bucket bounds that grow by a factor, as in Kubernetes' histograms."""
    return tuple(start * factor**power for power in range(count))
