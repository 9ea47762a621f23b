"""A weighted sample of fixed size from each window of time, with the probability of each record that is kept.

Priority sampling (Duffield, Lund and Thorup 2007): record *i* of weight :math:`w_i` has the priority
:math:`q_i = w_i / u_i` with :math:`u_i` uniform on (0, 1], and the highest priorities are kept. With the threshold
:math:`\\tau`, the highest priority that was not kept, record *i* counts as drawn with the probability

    :math:`\\pi_i = \\min(1, w_i / \\tau)`

so that :math:`\\hat Y = \\sum_{kept} y_i / \\pi_i` is unbiased for the total of any :math:`y` over the window, two
records' terms are uncorrelated, and :math:`\\sum_{kept} y_i^2 (1 - \\pi_i) / \\pi_i^2` is unbiased for its variance
(their theorem 1; at least two records must be kept for the latter). It holds as well where the lowest priorities are
put out because the kept ones take too many bytes: what is kept is what lies above the highest priority that is not, and
that threshold is the same whatever the own priority of a record that is kept.
"""

from __future__ import annotations

import heapq
import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from opmon.durations import duration
from opmon.errors import InputError
from opmon.recorder._entries import Entry, inputs_of
from opmon.recorder._rarely import Rarely

_LEAST = 0.05
_rarely = Rarely(logging.getLogger(__name__))
Weigh = Callable[[Any, Any, Any], float]  # a function of the user's, which knows what the inputs are


@dataclass(frozen=True, slots=True)
class Sample:
    """``keep`` records of every window of ``every`` seconds; ``weigh`` says how much each matters, else all alike."""

    keep: int
    every: float
    weigh: Weigh | None = None

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Sample:
        """The sample that the user describes: ``{"keep": 10000, "every": "1m", "by": "confidence"}``."""
        unknown = set(given) - {"keep", "every", "by"}
        if unknown:
            raise InputError(f"sample has no {sorted(unknown)[0]!r}; it has: keep, every, by")
        keep, by = given.get("keep"), given.get("by")
        if not isinstance(keep, int) or isinstance(keep, bool) or keep < 1:
            raise InputError(f"sample: keep is a whole number of records, at least 1; got {keep!r}")
        if by is not None and by != "confidence" and not callable(by):
            raise InputError(f"sample: by is 'confidence', or a function of inputs, prediction and scores; got {by!r}")
        return cls(keep, _seconds(given.get("every", "1m")), unsure if by == "confidence" else cast("Weigh | None", by))

    def weight(self, inputs: object, prediction: object, scores: object) -> float:
        """How much a record matters; 1 where it cannot be told."""
        if self.weigh is None:
            return 1.0
        try:
            weight = float(self.weigh(inputs, prediction, scores))
        except Exception as exc:  # noqa: BLE001 - the user's function
            _rarely.warning("the weight of a record cannot be told (%s: %s); it counts as 1", type(exc).__name__, exc)
            return 1.0
        return weight if 0 < weight < math.inf else 1.0

    def weight_of(self, entry: Entry) -> float:
        """How much the record of an entry matters; it is unpacked to tell."""
        if self.weigh is None:
            return 1.0
        try:
            record = next(iter(entry.unpacked()))
        except Exception:  # noqa: BLE001 - it is counted as unwritable when it is written
            return 1.0
        return self.weight(inputs_of(record), record["prediction"], record["scores"])


def unsure(inputs: object, prediction: object, scores: Iterable[float] | None) -> float:
    """One minus the highest score, and never less than a twentieth: what the model is unsure of is kept more often."""
    return 1.0 if scores is None else max(_LEAST, 1.0 - float(max(scores)))


class Reservoir:
    """The records that are kept of one window."""

    def __init__(self, keep: int, most_bytes: int, chance: random.Random) -> None:
        self._keep, self._most_bytes, self._chance = keep, most_bytes, chance
        self._kept: list[tuple[float, int, float, Entry]] = []
        self.began_ns, self.began = time.time_ns(), time.monotonic()
        self.threshold = self.total = 0.0
        self.seen = self.bytes = 0

    def draw(self, weight: float) -> float:
        """The priority of one more record."""
        self.seen += 1
        self.total += weight
        return weight / (1.0 - self._chance.random())

    def forget(self, weight: float) -> None:
        """Take back the last draw: there was no record."""
        self.seen -= 1
        self.total -= weight

    def miss(self, priority: float) -> None:
        """Note the priority of a record that is not kept."""
        self.threshold = max(self.threshold, priority)

    def keep(self, priority: float, weight: float, entry: Entry) -> None:
        """Take a record in, and put out those of the lowest priority as far as there is no room."""
        heapq.heappush(self._kept, (priority, self.seen, weight, entry))
        self.bytes += entry.size
        while len(self._kept) > self._keep or self.bytes > self._most_bytes:
            lowest, _, _, out = heapq.heappop(self._kept)
            self.bytes -= out.size
            self.miss(lowest)

    def kept(self) -> list[Entry]:
        """The records in the order in which they came, each with its probability."""
        for _, _, weight, entry in self._kept:
            entry.inclusion = min(1.0, weight / self.threshold) if self.threshold else 1.0
        return [entry for _, _, _, entry in sorted(self._kept, key=lambda each: each[1])]

    def __len__(self) -> int:
        return len(self._kept)


def _seconds(given: object) -> float:
    """
    >>> _seconds("5m"), _seconds(30)
    (300.0, 30.0)
    """
    try:
        seconds = float(given) if isinstance(given, int | float) else duration(given).total_seconds()
    except ValueError as exc:
        raise InputError(f"sample: every {exc}; got {given!r}") from exc
    if not 0 < seconds < math.inf:
        raise InputError(f"sample: every must be more than 0 seconds; got {given!r}")
    return seconds
