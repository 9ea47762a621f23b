"""The metrics as Prometheus reads them.

What is told of monitors comes from the database, so that every process tells the same; what is told of the process (its
memory, its processor time, its files) is its own. Labels are names that the configuration holds: there are no more of
them than monitors, measures and rules. The documentation lists every metric, and a test compares the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

import opmon
from opmon.outgoing import overdue
from opmon.queries.gauges import Gauges
from opmon.store.states import RoundState
from opmon.store.workers import Worker
from opmon.types import Estimate
from opmon.waiting import hanging

STATUSES = ("healthy", "degraded", "unknown", "unwatched")


def exposed(told: Sequence[Gauges] | None, own: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """All metrics and their media type: the process's ``own``, and those of monitors, where the database told them."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(_Collected([*own, *of_monitors(told or ())]))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _Collected(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def of_process(has_database: bool, is_configured: bool | None) -> Iterator[Metric]:
    """The metrics of the process itself."""
    yield InfoMetricFamily("opmon_build", "The version of opmon that runs.", {"version": opmon.__version__})
    yield GaugeMetricFamily(
        "opmon_database_up", "Whether the database answered when this was asked.", value=float(has_database)
    )
    if is_configured is not None:
        yield GaugeMetricFamily(
            "opmon_config_last_reload_successful",
            "Whether the newest configuration could be taken over.",
            value=float(is_configured),
        )
    late = CounterMetricFamily(
        "opmon_waits_given_up", "How often this process waited in vain until the time was over.", labels=["kind"]
    )
    for kind, count in overdue.counts().items():
        late.add_metric([kind], count)
    yield late
    yield GaugeMetricFamily(
        "opmon_hanging_calls",
        "Calls that this process waits for no more and that have not ended.",
        value=len(hanging()),
    )


def of_workers(alive: Sequence[Worker], now: datetime) -> Iterator[Metric]:
    """The metrics of the processes that work on monitors, as they told the database."""
    yield GaugeMetricFamily("opmon_workers", "Workers that said of late that they are there.", value=len(alive))
    stuck = GaugeMetricFamily(
        "opmon_breaker_open_workers", "Workers that leave a target alone, for it did not answer.", labels=["target"]
    )
    for target, count in Counter(target for worker in alive for target in worker.breakers).items():
        stuck.add_metric([target], count)
    yield stuck
    moved: dict[str, datetime] = {}
    for name, at in (pair for worker in alive for pair in worker.busy.items()):
        moved[name] = max(at.moved, moved.get(name, at.moved))
    waits = GaugeMetricFamily(
        "opmon_cycle_stuck_seconds", "For how long nothing has moved in a cycle that takes long.", labels=["monitor"]
    )
    for name, moment in sorted(moved.items()):
        waits.add_metric([name], max(0.0, (now - moment).total_seconds()))
    if waits.samples:
        yield waits


def of_monitors(told: Sequence[Gauges]) -> Iterator[Metric]:
    """The metrics of monitors; families without a sample are left out, as Prometheus would."""
    for family in (*_measures(told), *_counts(told), *_states(told), *_times(told), *_cycles(told)):
        if family.samples:
            yield family


def _measures(told: Sequence[Gauges]) -> Iterator[Metric]:
    names = ["monitor", "measure", "unit"]
    value = GaugeMetricFamily("opmon_measure_value", "The newest final estimate of a measure.", labels=names)
    low = GaugeMetricFamily("opmon_measure_lower_bound", "The lower end of its interval.", labels=names)
    high = GaugeMetricFamily("opmon_measure_upper_bound", "The upper end of its interval.", labels=names)
    accuracy = [
        GaugeMetricFamily(f"opmon_accuracy_{what}ratio", words, labels=["monitor"])
        for what, words in (
            ("", "The newest final estimate of the accuracy, as a share."),
            ("lower_", "The lower end of the accuracy's interval."),
            ("upper_", "The upper end of the accuracy's interval."),
        )
    ]
    for gauges in told:
        latest = gauges.line.latest
        if latest is None:
            continue
        further = [each.estimate for each in latest.further if each.estimate is not None]
        for estimate in _once([latest.estimate, *further]):
            key = [gauges.line.name, estimate.quantity.name, estimate.quantity.unit]
            numbers = (estimate.value, estimate.low, estimate.high)
            for family, number in zip((value, low, high), numbers, strict=True):
                family.add_metric(key, number)
            if estimate.quantity.name == "accuracy":
                for family, number in zip(accuracy, numbers, strict=True):
                    family.add_metric(key[:1], number)
    yield from (value, low, high, *accuracy)


def _once(estimates: Sequence[Estimate]) -> Iterator[Estimate]:
    """The first of those that have the same name and unit: two series may not have the same labels."""
    seen = set()
    for estimate in estimates:
        key = estimate.quantity.name, estimate.quantity.unit
        if key not in seen:
            seen.add(key)
            yield estimate


def _counts(told: Sequence[Gauges]) -> Iterator[Metric]:
    received = CounterMetricFamily("opmon_inputs_received", "Inputs that came into rounds.", labels=["monitor"])
    returned = CounterMetricFamily("opmon_labels_returned", "Tasks that were answered.", labels=["monitor"])
    waiting = GaugeMetricFamily("opmon_labels_waiting", "Tasks that wait for annotators.", labels=["monitor"])
    rounds = GaugeMetricFamily("opmon_rounds", "Rounds by state.", labels=["monitor", "state"])
    outbox = GaugeMetricFamily(
        "opmon_outbox_deliveries",
        "Deliveries of events that wait, that were tried in vain several times (failing), or are given up (dead).",
        labels=["monitor", "state"],
    )
    for each in told:
        name = each.line.name
        received.add_metric([name], each.totals.received)
        returned.add_metric([name], each.totals.spoken)
        waiting.add_metric([name], each.line.queue.open)
        for state in RoundState:
            rounds.add_metric([name, str(state)], each.totals.rounds.get(state, 0))
        outbox.add_metric([name, "waiting"], each.waiting)
        outbox.add_metric([name, "failing"], each.failing)
        outbox.add_metric([name, "dead"], each.dead)
    yield from (received, returned, waiting, rounds, outbox)


def _states(told: Sequence[Gauges]) -> Iterator[Metric]:
    status = GaugeMetricFamily(
        "opmon_monitor_status", "1 for how the monitor stands, 0 for the others.", labels=["monitor", "status"]
    )
    alarm = GaugeMetricFamily("opmon_rule_alarm", "Whether the rule's alarm stands.", labels=["monitor", "rule"])
    silent = GaugeMetricFamily(
        "opmon_monitor_silent", "Whether no cycle has ended for too many periods.", labels=["monitor"]
    )
    for each in told:
        for name in STATUSES:
            status.add_metric([each.line.name, name], float(each.line.status == name))
        for reason in each.line.reasons:
            alarm.add_metric([each.line.name, reason.rule], float(reason.state == "alarm"))
        silent.add_metric([each.line.name], float(each.pulse.silent))
    yield from (status, alarm, silent)


def _times(told: Sequence[Gauges]) -> Iterator[Metric]:
    kinds = {
        "begun": "When the schedule last began the monitor.",
        "cycle": "When a cycle of the monitor last ended, however.",
        "success": "When a cycle of the monitor last did all that it had to do.",
        "estimate": "When the last input came of the round with the newest final estimate.",
    }
    families = {
        kind: GaugeMetricFamily(f"opmon_last_{kind}_timestamp_seconds", words, labels=["monitor"])
        for kind, words in kinds.items()
    }
    for each in told:
        latest = each.line.latest
        moments: dict[str, datetime | None] = {
            "begun": each.pulse.begun_at,
            "cycle": None if each.pulse.ended is None else each.pulse.ended.at,
            "success": each.pulse.succeeded_at,
            "estimate": None if latest is None else latest.at,
        }
        for kind, moment in moments.items():
            if moment is not None:
                families[kind].add_metric([each.line.name], moment.timestamp())
    yield from families.values()


def _cycles(told: Sequence[Gauges]) -> Iterator[Metric]:
    ended = CounterMetricFamily("opmon_cycles", "Cycles that ended.", labels=["monitor", "outcome"])
    seconds = SummaryMetricFamily("opmon_cycle_duration_seconds", "How long cycles took.", labels=["monitor"])
    last = GaugeMetricFamily("opmon_cycle_last_duration_seconds", "How long the last one took.", labels=["monitor"])
    running = GaugeMetricFamily(
        "opmon_cycle_failures", "Cycles that failed running, up to the last.", labels=["monitor"]
    )
    for each in told:
        name, ended_ = each.line.name, each.pulse.ended
        if ended_ is None:
            continue
        ended.add_metric([name, "failed"], ended_.failed)
        ended.add_metric([name, "not_failed"], ended_.count - ended_.failed)
        seconds.add_metric([name], ended_.count, ended_.seconds)
        last.add_metric([name], ended_.last_seconds)
        running.add_metric([name], ended_.failures)
    yield from (ended, seconds, last, running)
