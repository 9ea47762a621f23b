"""The proxy of a round: what guesses where the model is wrong, fixed before any label of the wave is asked for.

It is found when the round is drawn, and goes with the draw: whatever keeps the draw keeps it. For a column of the log
and for what was learned from rounds before it is known of the whole frame; of a judge, of the drawn inputs and of a
random sample of the frame beside them (two phases). Rules that bet on draws do not look at it: what they promise holds
as without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.errors import NotFoundError
from opmon.estimators.learned import learned
from opmon.estimators.proxies import Proxy
from opmon.problems import loss, traits
from opmon.replies import Replies
from opmon.stages.beside import beside_frame, frame_column, losses_of
from opmon.stages.frames import read_frame
from opmon.stages.guesses import Said, keep_guesses, reference_of
from opmon.stages.judging import judged, sample_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.truth import vocabulary_of
from opmon.store import queue, rounds
from opmon.store.rounds import Round
from opmon.truth.reading import Vocabulary
from opmon.types import Draw, Floats

log = logging.getLogger(__name__)

FILE = "proxy.parquet"
"""What is said of the whole frame, in its order."""
BEFORE = "proxy.npy"
"""The same, as releases before kept it: how likely the model is wrong, with its mean where nothing is said."""
ROUNDS = 20
"""The rounds before whose labels are learned from, at most."""


def with_proxy(work: Toolbox, round_: Round, path: Path, drawn: Draw) -> Draw:
    """The draw with the proxy that the round's plan names; as it is where nothing is known of it."""
    match (round_.plan.proxy or {}).get("by"):
        case "judge" if len(sample := sample_of(round_, drawn.frame_size)) < drawn.frame_size:
            proxy = _of_judge(work, round_, path, drawn, sample)
        case _:
            said = _of_frame(work, round_, path)
            proxy = None if said is None else Proxy.of_frame(_filled(said), drawn)
            if said is not None:
                every, reference = np.arange(drawn.frame_size), reference_of(round_, drawn.frame_size)
                keep_guesses(work, round_, path, drawn, reference, every, said)
    return drawn if proxy is None else proxy.carried_by(drawn)


def _of_judge(work: Toolbox, round_: Round, path: Path, drawn: Draw, sample: NDArray[np.int64]) -> Proxy | None:
    """Two phases: a random sample of the frame and the drawn inputs are asked about together, in random order."""
    positions = np.union1d(sample, drawn.positions)
    said = judged(work, round_, path, positions)
    of_sample = said.wrong[np.searchsorted(positions, sample)]
    if np.isnan(of_sample).all():
        return None
    keep_guesses(work, round_, path, drawn, sample, positions, said)
    usual = float(np.nanmean(of_sample))  # of what it could not tell: known before any label, like the rest
    filled = np.where(said.known, said.wrong, usual)
    value = filled[np.searchsorted(positions, drawn.positions)]
    return Proxy.of_sample(value, filled[np.searchsorted(positions, sample)], drawn.frame_size)


def _of_frame(work: Toolbox, round_: Round, path: Path) -> Said | None:
    """What is said of the whole frame, as it was found with the first wave; None where nothing is known."""
    kept = work.round_folder(round_) / FILE
    if round_.waves and not kept.exists():
        try:
            kept = work.registry.download(round_.run_id or "", FILE, kept.parent)
        except NotFoundError:
            return _of_release_before(work, round_)
    if not kept.exists():
        plan = round_.plan.proxy or {}
        found = _FROM[str(plan["by"])](work, round_, path)
        if found is None or not found.known.any():
            log.warning("round %d of %s: the proxy %s says nothing", round_.number, work.name, round_.plan.proxy)
            return None
        columns = {"wrong": pa.array(found.wrong.astype(np.float32))}
        if found.answers is not None:
            columns["answer"] = found.answers
        partial = kept.with_suffix(".partial")
        pq.write_table(pa.table(columns), partial, compression="zstd")
        partial.replace(kept)
        if round_.run_id is not None:
            work.registry.log_artifact(round_.run_id, kept)
    table = pq.read_table(kept).combine_chunks()
    answers = table["answer"].combine_chunks() if "answer" in table.column_names else None
    return Said(table["wrong"].to_numpy().astype(np.float64), answers)


def _of_release_before(work: Toolbox, round_: Round) -> Said | None:
    """What a release before has kept of a round whose first wave it drew."""
    kept = work.round_folder(round_) / BEFORE
    try:
        kept = kept if kept.exists() else work.registry.download(round_.run_id or "", BEFORE, kept.parent)
    except NotFoundError:
        return None
    return Said(np.load(kept).astype(np.float64))


def _of_column(work: Toolbox, round_: Round, path: Path) -> Said:
    """Where somebody else's answer differs from the judged one, or how likely a column says that it is wrong."""
    plan = round_.plan.proxy or {}
    said = frame_column(path, "prediction")
    wrong: NDArray[np.float64] = np.full(len(said), np.nan)
    numbers = Vocabulary(Replies("regression"))
    found: list[pa.Array] = []
    at: list[NDArray[np.int64]] = []
    for positions, values in beside_frame(work, round_, path, str(plan["column"])):
        if plan["says"] == "answer":
            answers = vocabulary_of(work.settings, round_.classes).named(values)[0]
            wrong[positions] = losses_of(round_, answers, said.take(positions))
            found.append(answers)
            at.append(positions)
        else:
            told = numbers.named(values)[0].to_numpy(zero_copy_only=False).astype(np.float64)
            wrong[positions] = told if plan["says"] == "wrong" else 1 - told
    if not found:
        return Said(wrong)
    every = pa.chunked_array(found).combine_chunks()
    place: NDArray[np.int64] = np.full(len(said), -1)
    place[np.concatenate(at)] = np.arange(len(every))
    return Said(wrong, every.take(pa.array(place, mask=place < 0)))


def _judged(work: Toolbox, round_: Round, path: Path) -> Said:
    """What a judge holds of every input."""
    return judged(work, round_, path, np.arange(len(frame_column(path, "slice"))))


def _filled(said: Said) -> Floats:
    """How likely the model is wrong, with the mean where nothing is said."""
    return np.where(said.known, said.wrong, said.wrong[said.known].mean())


def _learned(work: Toolbox, round_: Round, path: Path) -> Said | None:
    """The failure rate that the labels of the version's rounds before tell; None while they are too few."""
    variables: dict[str, list[float]] = {}
    outcomes: list[float] = []
    with work.store.read() as connection:
        before = [each for each in rounds.newest(connection, work.name, ROUNDS + 1) if each.number < round_.number]
        for each in before:
            if each.model != round_.model:
                continue
            for task in queue.answers(connection, each.id):
                if task.truth is not None:
                    outcomes.append(loss(task.truth, task.prediction, round_.plan.problem))
                    for name, value in task.variables.items():
                        variables.setdefault(name, [np.nan] * (len(outcomes) - 1)).append(value)
    frame = read_frame(path)
    old = {name: np.array(values) for name, values in variables.items() if len(values) == len(outcomes)}
    both = {name: frame.variables[name] for name in old if name in frame.variables}
    rate = learned(old, np.array(outcomes), both, binary=traits(round_.plan.problem).right_or_wrong is True)
    return None if rate is None else Said(rate)


_FROM: Mapping[str, Callable[[Toolbox, Round, Path], Said | None]] = {
    "column": _of_column,
    "judge": _judged,
    "learned": _learned,
}
"""By what the plan says, where the guesses for a whole frame come from."""
