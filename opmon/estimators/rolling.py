"""Several rounds as one estimate: the last k rounds, the last 30 days."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from opmon.errors import InputError
from opmon.types import Estimate


def combine(estimates: Sequence[Estimate]) -> Estimate:
    """The figure over all inputs of independent rounds: ``Σ W_r v_r`` with ``W_r = N_r / ΣN``.

    Unbiased where each round's estimate is. The interval moves each bound by what the rounds' own bounds allow,
    ``low = v − sqrt(Σ W_r² (v_r − low_r)²)`` and likewise above (Zou and Donner, Statistics in Medicine 27, 2008): it
    keeps the lopsidedness of the parts, and one round gives its own interval back.

    >>> one = Estimate(0.8, 0.7, 0.85, n=50, frame_size=1000, response=1.0, method="srs")
    >>> two = Estimate(0.9, 0.8, 0.95, n=50, frame_size=3000, response=1.0, method="srs")
    >>> found = combine([one, two])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.875, 0.796, 0.915)
    """
    if not estimates:
        raise InputError("there is no estimate to combine; give at least one round")
    for name in ("quantity", "level"):
        found = {getattr(estimate, name) for estimate in estimates}
        if len(found) > 1:
            raise InputError(f"rounds must have one {name} to be combined; got {', '.join(map(str, sorted(found)))}")
    N = sum(estimate.frame_size for estimate in estimates)
    n = sum(estimate.n for estimate in estimates)
    W = [estimate.frame_size / N for estimate in estimates]
    value = math.fsum(w * e.value for w, e in zip(W, estimates, strict=True))
    below = math.sqrt(math.fsum((w * (e.value - e.low)) ** 2 for w, e in zip(W, estimates, strict=True)))
    above = math.sqrt(math.fsum((w * (e.high - e.value)) ** 2 for w, e in zip(W, estimates, strict=True)))
    errors = [e.standard_error for e in estimates]
    squares = [(w * s) ** 2 for w, s in zip(W, errors, strict=True) if s is not None]
    return Estimate(
        value=value,
        low=value - below,
        high=value + above,
        n=n,
        frame_size=N,
        response=sum(e.response * e.n for e in estimates) / n if n else 0.0,
        method=f"rolling over {len(estimates)} rounds",
        level=estimates[0].level,
        quantity=estimates[0].quantity,
        standard_error=math.sqrt(math.fsum(squares)) if len(squares) == len(errors) else None,
        provisional=any(e.provisional for e in estimates),
        notes=tuple(dict.fromkeys(note for e in estimates for note in e.notes)),
    )


def window(
    count: int,
    *,
    rounds: int | None = None,
    ends: Sequence[datetime] | None = None,
    within: timedelta | None = None,
) -> list[int]:
    """Which of ``count`` rounds, oldest first, count as of the last one: by number, by time, or the narrower of both.

    >>> window(8, rounds=3)
    [5, 6, 7]
    """
    if rounds is not None and rounds < 1:
        raise InputError(f"rounds must be at least 1; got {rounds}")
    if within is not None and (ends is None or len(ends) != count):
        raise InputError("within needs ends, the end of each round, one per estimate")
    kept = list(range(count))
    if within is not None and ends:
        last = max(ends)
        kept = [i for i in kept if last - ends[i] <= within]
    return kept[-rounds:] if rounds is not None else kept


def rolling(
    estimates: Sequence[Estimate],
    *,
    rounds: int | None = None,
    ends: Sequence[datetime] | None = None,
    within: timedelta | None = None,
) -> Estimate:
    """``combine`` of the last ``rounds``, or of those that ended ``within`` a time of the last one; oldest first.

    ``ends`` are the rounds' ends, needed for ``within``; with both limits the narrower one counts.
    """
    return combine([estimates[i] for i in window(len(estimates), rounds=rounds, ends=ends, within=within)])
