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
from numpy.typing import NDArray

from opmon.errors import NotFoundError
from opmon.estimators.learned import learned
from opmon.estimators.proxies import Proxy
from opmon.problems import loss, traits
from opmon.replies import Replies
from opmon.stages.beside import beside_frame, frame_column, losses_of
from opmon.stages.frames import read_frame
from opmon.stages.judging import judged, sample_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.truth import vocabulary_of
from opmon.store import queue, rounds
from opmon.store.rounds import Round
from opmon.truth.reading import Vocabulary
from opmon.types import Draw, Floats

log = logging.getLogger(__name__)

FILE = "proxy.npy"
"""The guesses for the whole frame, in its order."""
ROUNDS = 20
"""The rounds before whose labels are learned from, at most."""


def with_proxy(work: Toolbox, round_: Round, path: Path, drawn: Draw) -> Draw:
    """The draw with the proxy that the round's plan names; as it is where nothing is known of it."""
    match (round_.plan.proxy or {}).get("by"):
        case "judge" if len(sample := sample_of(round_, drawn.frame_size)) < drawn.frame_size:
            proxy = _of_judge(work, round_, path, drawn, sample)
        case _:
            guesses = _of_frame(work, round_, path)
            proxy = None if guesses is None else Proxy.of_frame(guesses, drawn)
    return drawn if proxy is None else proxy.carried_by(drawn)


def _of_judge(work: Toolbox, round_: Round, path: Path, drawn: Draw, sample: NDArray[np.int64]) -> Proxy | None:
    """Two phases: a random sample of the frame and the drawn inputs are asked about together, in random order."""
    positions = np.union1d(sample, drawn.positions)
    wrong = judged(work, round_, path, positions)
    of_sample = wrong[np.searchsorted(positions, sample)]
    if np.isnan(of_sample).all():
        return None
    usual = float(np.nanmean(of_sample))  # of what it could not tell: known before any label, like the rest
    filled = np.where(np.isnan(wrong), usual, wrong)
    value = filled[np.searchsorted(positions, drawn.positions)]
    return Proxy.of_sample(value, filled[np.searchsorted(positions, sample)], drawn.frame_size)


def _of_frame(work: Toolbox, round_: Round, path: Path) -> Floats | None:
    """The guesses for the whole frame, as they were found with the first wave; None where nothing is known."""
    kept = work.round_folder(round_) / FILE
    if round_.waves and not kept.exists():
        try:
            kept = work.registry.download(round_.run_id or "", FILE, kept.parent)
        except NotFoundError:
            return None
    if not kept.exists():
        plan = round_.plan.proxy or {}
        found = _FROM[str(plan["by"])](work, round_, path)
        if found is None:
            return None
        partial = kept.with_suffix(".partial.npy")
        np.save(partial, found.astype(np.float32))
        partial.replace(kept)
        if round_.run_id is not None:
            work.registry.log_artifact(round_.run_id, kept)
    return np.load(kept).astype(np.float64)  # type: ignore[no-any-return]


def _of_column(work: Toolbox, round_: Round, path: Path) -> Floats | None:
    """Where somebody else's answer differs from the judged one, or how likely a column says that it is wrong."""
    plan = round_.plan.proxy or {}
    said = frame_column(path, "prediction")
    wrong: NDArray[np.float64] = np.full(len(said), np.nan)
    numbers = Vocabulary(Replies("regression"))
    for positions, values in beside_frame(work, round_, path, str(plan["column"])):
        if plan["says"] == "answer":
            answers = vocabulary_of(work.settings, round_.classes).named(values)[0]
            wrong[positions] = losses_of(round_, answers, said.take(positions))
        else:
            found = numbers.named(values)[0].to_numpy(zero_copy_only=False).astype(np.float64)
            wrong[positions] = found if plan["says"] == "wrong" else 1 - found
    return _filled(work, round_, wrong)


def _judged(work: Toolbox, round_: Round, path: Path) -> Floats | None:
    """What a judge holds of every input."""
    return _filled(work, round_, judged(work, round_, path, np.arange(len(frame_column(path, "slice")))))


def _filled(work: Toolbox, round_: Round, wrong: Floats) -> Floats | None:
    """The guesses with their mean where there is none; None where there is none at all."""
    known = ~np.isnan(wrong)
    if not known.any():
        log.warning("round %d of %s: the proxy %s says nothing", round_.number, work.name, round_.plan.proxy)
        return None
    return np.where(known, wrong, wrong[known].mean())


def _learned(work: Toolbox, round_: Round, path: Path) -> Floats | None:
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
    return learned(old, np.array(outcomes), both, binary=traits(round_.plan.problem).right_or_wrong is True)


_FROM: Mapping[str, Callable[[Toolbox, Round, Path], Floats | None]] = {
    "column": _of_column,
    "judge": _judged,
    "learned": _learned,
}
"""By what the plan says, where the guesses for a whole frame come from."""
