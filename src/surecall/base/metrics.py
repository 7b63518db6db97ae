"""Counters, gauges and histograms with closed sets of labels, in the text form of Prometheus.

A label takes only values that were declared: anything else is counted as `other`, so that no
client can make a series grow. Updating a known series is a lookup and an addition. Everything
happens on one thread; several processes are added up from their snapshots.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

from surecall.base.errors import Code, SetupError

OTHER: Final = "other"
"""The label under which an undeclared value is counted."""
MAX_VALUES: Final = 500
"""How many values one label may have; what is declared beyond is `other`."""
SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
"""Bounds for what takes from a tenth of a millisecond to ten minutes."""
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text form."""

Kind = Literal["counter", "gauge", "histogram"]
Values = tuple[str, ...]


class SeriesSnapshot(Struct, frozen=True):
    """All values of one series at one moment."""

    name: str
    samples: tuple[tuple[Values, tuple[float, ...]], ...]


class Series:
    """Common to all kinds: a name, a help text, and labels with the values they may have."""

    kind: Kind

    def __init__(self, name: str, text: str, labels: Mapping[str, Collection[str]]) -> None:
        self.name = name
        self.help = text
        self.labels = tuple(labels)
        self._allowed = [set[str]() for _ in labels]
        for label, values in labels.items():
            self.allow(label, values)

    def allow(self, label: str, values: Iterable[str]) -> None:
        """Declare more values of a label."""
        allowed = self._allowed[self.labels.index(label)]
        for value in values:
            if len(allowed) < MAX_VALUES:
                allowed.add(value)

    def _closed(self, values: Values) -> Values:
        """Return the values that these are counted under."""
        if len(values) != len(self.labels):
            raise SetupError(
                Code.INVALID_OPTION,
                f"{self.name} has the labels {self.labels}, not {len(values)} values.",
            )
        pairs = zip(values, self._allowed, strict=True)
        return tuple(value if value in allowed else OTHER for value, allowed in pairs)

    def declares(self, *values: str) -> bool:
        """Tell whether these values are counted apart, and not as `other`."""
        return self._closed(values) == values

    def samples(self) -> dict[Values, tuple[float, ...]]:
        """Return all values."""
        raise TypeError("every kind of series has its own samples")

    def snapshot(self) -> SeriesSnapshot:
        """Return all values as plain data, for another process."""
        return SeriesSnapshot(self.name, tuple(self.samples().items()))

    def render(self, samples: Mapping[Values, tuple[float, ...]]) -> Iterable[str]:
        """Yield the lines of these values."""
        for values, (value,) in sorted(samples.items()):
            yield f"{self.name}{_braces(self.labels, values)} {_number(value)}"


class Counter(Series):
    """A number that only grows."""

    kind: Kind = "counter"

    def __init__(self, name: str, text: str, labels: Mapping[str, Collection[str]]) -> None:
        super().__init__(name, text, labels)
        self._samples: dict[Values, list[float]] = {} if labels else {(): [0]}

    def add(self, *values: str) -> None:
        """Count one more."""
        try:
            self._samples[values][0] += 1
        except KeyError:
            self.sample(*values)[0] += 1

    def add_many(self, amount: float, *values: str) -> None:
        """Count some more."""
        self.sample(*values)[0] += amount

    def sample(self, *values: str) -> list[float]:
        """Return the number itself, as the only item of a list, to be counted up in place."""
        sample = self._samples.get(values)
        return self._samples.setdefault(self._closed(values), [0]) if sample is None else sample

    def value(self, *values: str) -> float:
        """Return the number."""
        return self._samples.get(values, [0])[0]

    def samples(self) -> dict[Values, tuple[float, ...]]:
        """Return all values."""
        return {values: tuple(sample) for values, sample in self._samples.items()}


class Gauge(Series):
    """A number that goes up and down, kept here or asked for when it is shown."""

    kind: Kind = "gauge"

    def __init__(self, name: str, text: str, read: Callable[[], float] | None = None) -> None:
        super().__init__(name, text, {})
        self._read = read
        self._value: float = 0

    def add(self, amount: float) -> None:
        """Change it by an amount."""
        self._value += amount

    def set(self, value: float) -> None:
        """Give it a value."""
        self._value = value

    def value(self) -> float:
        """Return the number."""
        return self._value if self._read is None else self._read()

    def samples(self) -> dict[Values, tuple[float, ...]]:
        """Return the one value."""
        return {(): (self.value(),)}


class Levels(Counter):
    """Numbers that go up and down, one for each label; set them by their sample."""

    kind: Kind = "gauge"


class Histogram(Series):
    """How often values were within each bound, their sum and their number."""

    kind: Kind = "histogram"

    def __init__(
        self,
        name: str,
        text: str,
        labels: Mapping[str, Collection[str]],
        bounds: Iterable[float] = SECONDS,
    ) -> None:
        super().__init__(name, text, labels)
        self.bounds = tuple(sorted(bounds))
        self._samples: dict[Values, list[float]] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count a value."""
        sample = self._samples.get(values) or self.sample(*values)
        sample[bisect_left(self.bounds, value)] += 1
        sample[-1] += value

    def sample(self, *values: str) -> list[float]:
        """Return the counts below each bound and the sum, to be counted up in place."""
        sample = self._samples.get(values)
        if sample is not None:
            return sample
        values = self._closed(values)
        # One place for each bound, one for what is above all of them, and the sum.
        return self._samples.setdefault(values, [0] * (len(self.bounds) + 1) + [0.0])

    def samples(self) -> dict[Values, tuple[float, ...]]:
        """Return all values."""
        return {values: tuple(sample) for values, sample in self._samples.items()}

    def render(self, samples: Mapping[Values, tuple[float, ...]]) -> Iterable[str]:
        """Yield the lines of these values."""
        for values, (*counts, total) in sorted(samples.items()):
            below = 0.0
            for bound, count in zip((*self.bounds, "+Inf"), counts, strict=True):
                below += count
                text = bound if isinstance(bound, str) else _number(bound)
                braces = _braces((*self.labels, "le"), (*values, text))
                yield f"{self.name}_bucket{braces} {_number(below)}"
            braces = _braces(self.labels, values)
            yield f"{self.name}_sum{braces} {_number(total)}"
            yield f"{self.name}_count{braces} {_number(below)}"


S = TypeVar("S", bound=Series)


class Metrics:
    """All series of a process; the same name asked for twice is the same series."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}

    def counter(self, name: str, text: str, **labels: Collection[str]) -> Counter:
        """Return the counter of this name."""
        return self._keep(Counter(name, text, labels))

    def gauge(self, name: str, text: str, read: Callable[[], float] | None = None) -> Gauge:
        """Return the gauge of this name; `read` is asked for its value when it is shown."""
        return self._keep(Gauge(name, text, read))

    def levels(self, name: str, text: str, **labels: Collection[str]) -> Levels:
        """Return the gauges of this name."""
        return self._keep(Levels(name, text, labels))

    def histogram(
        self,
        name: str,
        text: str,
        bounds: Iterable[float] = SECONDS,
        **labels: Collection[str],
    ) -> Histogram:
        """Return the histogram of this name."""
        return self._keep(Histogram(name, text, labels, bounds))

    def _keep(self, made: S) -> S:
        kept: Any = self._series.setdefault(made.name, made)
        if type(kept) is not type(made) or kept.labels != made.labels:
            raise SetupError(Code.INVALID_OPTION, f"there is another metric {made.name}.")
        for label, allowed in zip(made.labels, made._allowed, strict=True):  # pyright: ignore[reportPrivateUsage] - its sibling
            kept.allow(label, allowed)
        return kept

    def allow(self, label: str, values: Iterable[str]) -> None:
        """Declare more values of a label in every series that has it."""
        values = tuple(values)
        for series in self._series.values():
            if label in series.labels:
                series.allow(label, values)

    def series(self) -> tuple[Series, ...]:
        """Return every series, in the order in which they were made."""
        return tuple(self._series.values())

    def snapshot(self) -> tuple[SeriesSnapshot, ...]:
        """Return everything as plain data, for another process."""
        return tuple(series.snapshot() for series in self._series.values())

    def render(self, others: Iterable[Iterable[SeriesSnapshot]] = ()) -> bytes:
        """Return everything in the text form, with the snapshots of other processes added."""
        more: dict[str, list[SeriesSnapshot]] = {}
        for snapshot in others:
            for one in snapshot:
                more.setdefault(one.name, []).append(one)
        lines: list[str] = []
        for series in self._series.values():
            samples = series.samples()
            for one in more.get(series.name, ()):
                for values, sample in one.samples:
                    samples[values] = _add_samples(samples.get(values), sample)
            lines.append(f"# HELP {series.name} {_escape(series.help)}")
            lines.append(f"# TYPE {series.name} {series.kind}")
            lines += series.render(samples)
        return ("\n".join(lines) + "\n").encode("utf-8") if lines else b""


def _add_samples(known: tuple[float, ...] | None, more: tuple[float, ...]) -> tuple[float, ...]:
    if known is None or len(known) != len(more):
        return more
    return tuple(one + other for one, other in zip(known, more, strict=True))


def _braces(labels: Values, values: Values) -> str:
    if not labels:
        return ""
    pairs = zip(labels, values, strict=True)
    return (
        "{" + ",".join(f'{label}="{_escape(value, quotes=True)}"' for label, value in pairs) + "}"
    )


def _escape(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
