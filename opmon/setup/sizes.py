"""The size of a round, from the amount that is logged."""

from __future__ import annotations

import math
from collections.abc import Iterator

from opmon.jobs.moments import span_of
from opmon.setup.choice import Choice
from opmon.setup.log import Log

_LEAST, _USUAL, _MOST = 100, 1000, 20_000
_DAY = 86_400.0


def sizes(log: Log, timestamp: str | None) -> Iterator[Choice]:
    """One round a day if that is enough for an estimate, else all that is there; and a budget that fits it."""
    pace = _a_day(log, timestamp)
    wanted = _USUAL if pace is None else min(max(pace, _LEAST), _MOST)
    least = _round(min(wanted, log.total))
    there = f"{'more than ' if log.more else ''}{log.total:,} inputs are logged"
    why = there if pace is None else f"{there}, about {_round(pace):,} a day"
    if log.total >= 2 * least:
        why += f"; the first round takes all of them, unless max_inputs is less, such as {least}"
    yield Choice(("round", "min_inputs"), least, why)
    days = 1 if pace is None or pace >= least else min(30, math.ceil(least / max(pace, 1)))
    yield Choice(("round", "max_age"), f"{days}d", "a round opens then with what there is")
    budget = 100 if least >= 500 else max(10, least // 5)
    yield Choice(("sampler", "budget"), budget, "labels asked for in each round: opmon plan says how many an aim takes")


def _a_day(log: Log, timestamp: str | None) -> float | None:
    span = None if timestamp is None else span_of(log.column(timestamp), timestamp)
    if span is None or log.rows.num_rows < 2:
        return None
    seconds = (span[1] - span[0]).total_seconds()
    return log.rows.num_rows * _DAY / seconds if seconds > 0 else None


def _round(number: float) -> int:
    """
    >>> [_round(number) for number in (7, 199, 200, 1797, 99_999)]
    [7, 190, 200, 1700, 99000]
    """
    whole = int(number)
    step = int(10 ** max(len(str(whole)) - 2, 0))
    return whole // step * step
