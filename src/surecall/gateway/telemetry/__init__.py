"""What happens, counted and traced: metrics for Prometheus and spans for OpenTelemetry.

Nothing leaves the process by itself: metrics are asked for, and spans go where the program sends
them.
"""

from surecall.base.metrics import (
    CONTENT_TYPE,
    OTHER,
    Counter,
    Gauge,
    Histogram,
    Metrics,
    SeriesSnapshot,
)

from .otel import RequestSpans, RunSpans, names_collector
from .record import AttemptNote, ParseError, ProbeNote, RequestRecord, StepNote
from .requests import OUTCOMES, RESULTS, RequestMetrics, RunMetrics, observe

__all__ = [
    "CONTENT_TYPE",
    "OTHER",
    "OUTCOMES",
    "RESULTS",
    "AttemptNote",
    "Counter",
    "Gauge",
    "Histogram",
    "Metrics",
    "ParseError",
    "ProbeNote",
    "RequestMetrics",
    "RequestRecord",
    "RequestSpans",
    "RunMetrics",
    "RunSpans",
    "SeriesSnapshot",
    "StepNote",
    "names_collector",
    "observe",
]
