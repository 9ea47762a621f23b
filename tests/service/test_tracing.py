"""Cycles and their stages are spans, where somebody collects them; elsewhere nothing is made of them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from opmon.logs.place import within
from opmon.service import tracing
from opmon.service.attention import Attention


def test_a_cycle_is_a_span_with_its_stages_inside() -> None:
    kept = InMemorySpanExporter()
    watcher, end = tracing.tracer(kept)
    attention = Attention()
    attention.watchers = (watcher,)
    with attention.on("digits"), within(round=5), within(stage="scoring"):
        pass
    end()
    scoring, round_, cycle = kept.get_finished_spans()
    assert [each.name for each in (cycle, round_, scoring)] == ["cycle", "round", "scoring"]
    assert dict(scoring.attributes or {}) == {"opmon.monitor": "digits", "opmon.round": 5}
    assert scoring.parent is not None
    assert scoring.parent.span_id == round_.context.span_id


def test_spans_are_sent_only_where_a_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tracing.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert tracing.exporter() is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert tracing.exporter() is not None
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert tracing.exporter() is None
