"""Whether numbers keep their digits on the way to a model that takes fewer of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.checks.finding import Finding
from opmon.errors import OpmonError
from opmon.scoring.scorer import Scorer

_MOST = 2000
"""So many numbers of an input are looked at."""
_KEPT = 0.9
"""So much of the different values must stay different."""


def lost_digits(about: str, scorer: Scorer, rows: pa.Table) -> Iterator[Finding]:
    """A warning if values that differ become the same to the model; else nothing."""
    batch = next((batch for batch in rows.to_batches() if batch.num_rows), None)
    try:
        lost = [] if batch is None else [*_lost(scorer, batch)]
    except OpmonError:  # said by the trial
        return
    if lost:
        message = (
            f"{'; '.join(lost[:3])} as float32, which the model takes. If production rounds them too, its answers are "
            f"the same; if it takes them as they are, it answers otherwise than what is scored here"
        )
        yield Finding(about, "warning", message)


def _lost(scorer: Scorer, batch: pa.RecordBatch) -> Iterator[str]:
    columns, exact, given = scorer.columns(batch), scorer.exact(batch).tensors, scorer.tensors(batch).tensors
    for name, values in exact.items():
        if not len(values) or values.dtype != np.float64 or given[name].dtype == np.float64:
            continue
        matrix = values.reshape(len(values), -1)[:, :_MOST]
        before, after = _different(matrix), _different(matrix.astype(np.float32))
        for place in np.flatnonzero(after < _KEPT * before).tolist():
            named = columns[place] if len(columns) == matrix.shape[1] else f"{name}[{place}]"
            yield f"{before[place]} different values of {named!r} become {after[place]}"


def _different(matrix: NDArray[np.floating]) -> NDArray[np.int64]:
    """How many different values each column has."""
    ordered = np.sort(matrix, axis=0)
    found: NDArray[np.int64] = (ordered[1:] != ordered[:-1]).sum(axis=0) + 1
    return found
