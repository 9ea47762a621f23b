"""Spans of OpenTelemetry: one for each cycle, and inside it one for each stage, where somebody collects them.

Nothing is done unless ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or that for traces) is set, with the extra ``otel`` installed.
The provider is opmon's own: what MLflow traces goes its own way.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import opmon
from opmon.logs.place import Place, Watcher

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def exporter() -> SpanExporter | None:
    """What sends spans to the collector that the environment names; None where there is none."""
    named = next((name for name in VARIABLES if os.environ.get(name)), None)
    if named is None or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        log.warning("%s is set, and nothing is traced: run pip install 'opmon[otel]'", named)
        return None
    sender: SpanExporter = OTLPSpanExporter()
    return sender


def tracer(to: SpanExporter) -> tuple[Watcher, Callable[[], None]]:
    """What makes a span of each place in the work, and what sends the last ones when the process ends."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "opmon"), "service.version": opmon.__version__}
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(to))
    spans = provider.get_tracer("opmon", opmon.__version__)

    @contextmanager
    def span(place: Place) -> Iterator[None]:
        attributes: dict[str, str | int] = {"opmon.monitor": place.monitor or ""}
        if place.round is not None:
            attributes["opmon.round"] = place.round
        name = place.stage or ("cycle" if place.round is None else "round")
        with spans.start_as_current_span(name, attributes=attributes):
            yield

    def watcher(place: Place) -> AbstractContextManager[None]:
        return nullcontext() if place.at_most is not None and place.waiting_for is None else span(place)

    return watcher, provider.shutdown
