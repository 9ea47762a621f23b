"""What a proxy guesses of the drawn inputs and of a reference that stands for the frame, kept with each wave.

The usual measure needs no more of a proxy than how likely the model is wrong, which goes with the draw. Others want to
know what is held to be true, what the model says, and its scores: of the drawn inputs, and of so many others that the
mean over the frame is known well. These are kept in a file for each wave, which is written before its labels are asked
for and read with each estimate.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.errors import OpmonError
from opmon.estimators.guesses import Guessed, Guesses
from opmon.problems import traits
from opmon.stages.frames import CHANCE, read_inputs
from opmon.stages.measures import labelled, measures_of
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.types import Draw, Floats, Numbers

log = logging.getLogger(__name__)

REFERENCE = 20_000
"""So many inputs, drawn at random, stand for a larger frame."""
POSITION, WRONG, ANSWER, REFERS = "position", "wrong", "answer", "reference"


@dataclass(frozen=True, eq=False)
class Said:
    """What a proxy says of some inputs, one entry per input."""

    wrong: Floats
    """How likely the model is wrong, or its squared error; NaN where nothing is said."""
    answers: pa.Array | None = None
    """What is held to be true, null where nothing is; None where that is never said."""

    @property
    def known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.wrong)

    def take(self, places: NDArray[np.int64]) -> Said:
        """What is said of some of the inputs."""
        return Said(self.wrong[places], None if self.answers is None else self.answers.take(pa.array(places)))


def named(round_: Round) -> str:
    """What assists a round, as its notes say it."""
    plan = round_.plan.proxy or {}
    match plan.get("by"):
        case "column":
            return f"a proxy (the column {plan['column']!r})"
        case "learned":
            return "a proxy (the failure rate learned from rounds before)"
    return "a proxy (the judge)"


def reference_of(round_: Round, size: int) -> NDArray[np.int64]:
    """The inputs that stand for the frame, in ascending order: all of a small one, else a simple random sample that is
    drawn independently of the draw."""
    if size <= REFERENCE:
        return np.arange(size)
    rng = np.random.default_rng([round_.plan.seed, zlib.crc32(round_.monitor.encode()), round_.number, 3_000_000])
    return np.sort(rng.choice(size, REFERENCE, replace=False))


def keep_guesses(
    work: Toolbox,
    round_: Round,
    path: Path,
    drawn: Draw,
    reference: NDArray[np.int64],
    at: NDArray[np.int64],
    said: Said,
) -> None:
    """Keep what is said of the inputs ``at`` these positions, which ascend, as far as they are drawn or refer."""
    if not any(not each.is_usual for each in measures_of(round_.plan)):
        return
    wanted = drawn.unique_positions if round_.waves else np.union1d(drawn.unique_positions, reference)
    inputs = read_inputs(path, np.sort(wanted))
    own = said.take(np.searchsorted(at, np.sort(wanted)))
    columns = {
        POSITION: pa.array(np.sort(wanted)),
        REFERS: pa.array(np.isin(np.sort(wanted), reference) & (round_.waves == 0)),
        WRONG: pa.array(own.wrong, pa.float64()),
        "prediction": inputs["prediction"],
    }
    if own.answers is not None:
        columns[ANSWER] = own.answers
    columns |= {name: inputs[name] for name in inputs.column_names if name.startswith(CHANCE)}
    kept = work.round_folder(round_) / _name(round_.waves)
    partial = kept.with_suffix(".partial")
    pq.write_table(pa.table(columns), partial, compression="zstd")
    partial.replace(kept)
    if round_.run_id is not None:
        work.registry.log_artifact(round_.run_id, kept)


def guesses_of(work: Toolbox, round_: Round, drawn: Draw) -> Guesses | None:
    """What was guessed of a round's draws before their labels; None where nothing is known of that."""
    if round_.plan.proxy is None or not any(not each.is_usual for each in measures_of(round_.plan)):
        return None
    try:
        waves = [_read(work, round_, wave) for wave in range(round_.waves)]
    except OpmonError as exc:
        log.warning("round %d of %s is estimated without its proxy: %s", round_.number, work.name, exc)
        return None
    if not waves:
        return None
    refers = waves[0].filter(waves[0][REFERS])
    every = pa.concat_tables(waves, promote_options="permissive")
    positions = every[POSITION].to_numpy()
    order = np.argsort(positions, kind="stable")
    places = order[np.minimum(np.searchsorted(positions[order], drawn.positions), len(order) - 1)]
    if not len(refers) or (positions[places] != drawn.positions).any():
        return None
    mine, others = _guessed(round_, every.take(pa.array(places))), _guessed(round_, refers)
    classes = tuple(round_.classes or ())
    return Guesses.of(round_.plan.problem, mine, others, drawn.frame_size, classes, named(round_))


def _read(work: Toolbox, round_: Round, wave: int) -> pa.Table:
    path = work.round_folder(round_) / _name(wave)
    if not path.exists():
        path = work.registry.download(round_.run_id or "", _name(wave), path.parent)
    return pq.read_table(path)


def _name(wave: int) -> str:
    return f"guesses-{wave}.parquet"


def _guessed(round_: Round, table: pa.Table) -> Guessed:
    holds, count = traits(round_.plan.problem), len(table)
    predicted = _texts(table["prediction"])
    answers = [None] * count if ANSWER not in table.column_names else table[ANSWER].to_pylist()
    told = np.array([answer is not None for answer in answers], dtype=np.bool_)
    rows = labelled(round_, told, ["" if each is None else str(each) for each in answers], predicted)
    truth = rows.truth if holds.compares else None
    return Guessed(rows.predicted, table[WRONG].to_numpy(), truth, told, _chances(table, tuple(round_.classes or ())))


def _texts(column: pa.ChunkedArray) -> Sequence[str]:
    return ["" if each is None else str(each) for each in column.to_pylist()]


def _chances(table: pa.Table, classes: tuple[str, ...]) -> Numbers | None:
    """The model's scores of all classes; None where the frame does not have them all."""
    names = [CHANCE + name for name in classes]
    if not names or any(name not in table.column_names for name in names):
        return None
    return np.stack([table[name].to_numpy() for name in names], axis=1)
