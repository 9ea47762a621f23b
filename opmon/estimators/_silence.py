"""Notes of an estimate on the draws without an answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.types import Sample
from opmon.wording import percent

SURE = 2.6
"""Standard errors by which two halves must differ to be told: by chance alone, in one estimate of a hundred."""


def missing(sample: Sample) -> tuple[str, ...]:
    """Notes on the draws without an answer: who stands in for them, and whether some are answered more than others."""
    silent = int((~sample.answered).sum())
    if not silent:
        return ()
    others = "the others of their stratum" if "stratum" in sample.draw.columns else "the others"
    note = f"{silent} of {len(sample.draw)} draws have no answer; {others} stand in"
    return (note, *_differs(sample))


def _differs(sample: Sample) -> tuple[str, ...]:
    """Whether one half of the draws is answered more than the other: by propensity, else by stratum."""
    answers, count = sample.answered, len(sample.draw)
    score = sample.propensity if sample.propensity is not None else _suspicion(sample)
    if score is None or count < 2:
        return ()
    order = np.argsort(score, kind="stable")
    low, high = (float(answers[half].mean()) for half in (order[: count // 2], order[count // 2 :]))
    least, most = percent(low, 0), percent(high, 0)
    if sample.propensity is not None:
        shares = f"{least} of the half of the draws that seldom answers has an answer, {most} of the other half"
        return (f"response differs: {shares}; {_WEIGHED}, which is right {_WHILE}",)
    if abs(high - low) < SURE * 2 * np.sqrt(sample.response * (1 - sample.response) / count):
        return ()
    shares = f"{least} of the more trusted half of the draws has an answer, {most} of the more suspicious half"
    return (f"response differs between strata: {shares}; {_STRATA}, which is right {_WHILE}",)


_WEIGHED = "answers weigh by the inverse of how likely they were"
_STRATA = "the answers of a stratum stand for all of it"
_WHILE = "while answering has nothing to do with being wrong among inputs that look alike to the variables"


def _suspicion(sample: Sample) -> NDArray[np.float64] | None:
    """The rank of each draw's stratum among those of its wave; strata are numbered by suspicion."""
    columns = sample.draw.columns
    if "stratum" not in columns:
        return None
    wave, stratum = columns.get("wave", np.zeros(len(sample.draw), dtype=np.int64)), columns["stratum"]
    low, high = np.full(int(wave.max()) + 1, np.inf), np.full(int(wave.max()) + 1, -np.inf)
    np.minimum.at(low, wave, stratum)
    np.maximum.at(high, wave, stratum)
    return np.asarray((stratum - low[wave]) / np.maximum(high - low, 1)[wave])
