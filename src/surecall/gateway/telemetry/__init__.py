"""What happens, counted and traced: metrics for Prometheus and spans for OpenTelemetry.

Nothing leaves the process by itself: metrics are asked for, and spans go where the program sends
them.
"""

from surecall.base.metrics import Metrics

from .counters import RequestMetrics, RunMetrics, observe
from .otel import RequestSpans, RunSpans

__all__ = ["Metrics", "RequestMetrics", "RequestSpans", "RunMetrics", "RunSpans", "observe"]
