"""The scores of drawn inputs, kept with their tasks: measures such as the area under the curve are made of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import OpmonError
from opmon.stages.measures import measures_of
from opmon.stages.toolbox import Toolbox, levels_of
from opmon.store.rounds import Round
from opmon.types import Batch, Numbers

log = logging.getLogger(__name__)


def scores_of_drawn(
    work: Toolbox, round_: Round, positions: NDArray[np.int64], rows: pa.Table
) -> Mapping[int, Numbers]:
    """The probability of each of the round's classes, by the position of the drawn inputs that ``rows`` are of.

    The model is asked once more, about these inputs alone: to keep the scores of all would take as many numbers for
    each input as there are classes. Nothing where no measure wants them; inputs whose scores cannot be had are left
    out, which measures that want them say.
    """
    if not any(each.measure.needs_scores for each in measures_of(round_.plan)):
        return {}
    try:
        return _asked(work, round_, positions, rows)
    except OpmonError as exc:
        log.warning("round %d of %s goes on without the scores of its inputs: %s", round_.number, work.name, exc)
        return {}


def _asked(work: Toolbox, round_: Round, positions: NDArray[np.int64], rows: pa.Table) -> dict[int, Numbers]:
    scorer = work.scorer_of(work.model(round_), levels_of(round_.plan) is not None).keeping_scores()
    found: dict[int, Numbers] = {}
    for scored in scorer.score(_batches(rows)):
        order = order_of(scored.classes, round_.classes)
        if scored.scores is None or order is None:
            lacks = "there are no scores that can be read" if order else "it is not known which class each score is of"
            log.warning("round %d of %s: %s", round_.number, work.name, lacks)
            return {}
        known = zip(scored.rows.tolist(), scored.scores[:, order], strict=True)
        found |= {int(positions[row]): values for row, values in known if np.isfinite(values).all()}
    return found


def order_of(own: Sequence[str] | None, wanted: Sequence[str] | None) -> list[int] | None:
    """Where each of the ``wanted`` classes is among ``own``; None where they are not the same classes."""
    if own is None or wanted is None or len(own) != len(wanted) or set(own) != set(wanted):
        return None
    return [list(own).index(name) for name in wanted]


def _batches(rows: pa.Table) -> list[Batch]:
    batches, first = [], 0
    for batch in rows.combine_chunks().to_batches():
        batches.append(Batch(0, first, batch))
        first += batch.num_rows
    return batches
