"""scored → drawn → labelling: choose the inputs worth a label and queue them for the annotators.

Only the drawn inputs are fetched again from the log, and captured: nothing asks the log for them later. The order
inside a batch is random, so that a batch half done is still a sample of the batch.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Sampler
from opmon.adjudication import Asked
from opmon.errors import InputError
from opmon.stages.aims import aimed, chances_of_drawn
from opmon.stages.asking import as_met
from opmon.stages.beside import fetch_table, frame_path
from opmon.stages.captured import capture
from opmon.stages.close import close_without_estimate
from opmon.stages.frames import VARIABLE, read_frame, read_inputs, read_predicted
from opmon.stages.measures import main_of
from opmon.stages.payloads import payload_of
from opmon.stages.promises import reserved_of
from opmon.stages.proxies import with_proxy
from opmon.stages.scores import scores_of_drawn
from opmon.stages.slicing import with_slices
from opmon.stages.toolbox import Toolbox, sampler_of
from opmon.stages.truth import POSITION, answered_at, truths_of_drawn
from opmon.store import draws, queue, rounds, truths
from opmon.store.rounds import NEVER, Round
from opmon.store.states import RoundState
from opmon.store.truths import Known
from opmon.types import Draw, Frame, Numbers, Sample
from opmon.wording import sentence

log = logging.getLogger(__name__)

MOST_PREDICTED = 1000
"""Of a model that predicts more classes it is not kept how many inputs each has: rules then bet less."""


def draw_round(work: Toolbox, round_: Round) -> None:
    """The first wave, which for most samplers is the only one."""
    sampler, path = sampler_of(round_.plan), frame_path(work, round_)
    frame = _seen_by(sampler, path, round_)
    if not frame.size:
        problem = (
            f"there was nothing to draw from: {round_.unscorable} inputs of {round_.received} cannot be scored, "
            f"{round_.duplicates} came before"
        )
        close_without_estimate(work, round_, problem)
        return
    if sampler.activation_levels is not None and frame.activations is None:
        log.warning("round %d of %s has a frame without activations: it is scored again", round_.number, work.name)
        with work.write() as connection:
            rounds.update(connection, round_.id, state=RoundState.OPENED, problem=None)
        return
    _require_main(round_)
    if round_.plan.measures:
        frame = aimed(work, round_, path, frame, None)
    drawn = sampler.draw(frame, round_.plan.budget, generator(round_, wave=0))
    _queue(work, round_, path, drawn, drawn.unique_positions, state=RoundState.DRAWN)


def _require_main(round_: Round) -> None:
    """An error where the main measure is of a class that the model does not have: labels would tell nothing of it."""
    main = main_of(round_.plan)
    if main is None or not round_.classes:
        return
    try:
        main.measure.check(round_.classes)
    except InputError as exc:
        number = round_.number
        raise InputError(
            f"no label is asked for, since none would tell the main measure, {main.key}: {sentence(str(exc))} Correct "
            f"'measures'; 'opmon rounds abandon {number} --why measures' and 'opmon rounds reopen {number}' then give "
            "the inputs to a new round"
        ) from exc


def draw_next_wave(work: Toolbox, round_: Round, sample: Sample) -> bool:
    """Another wave, where the sampler is adaptive and its budget not spent; false where there is none."""
    sampler = sampler_of(round_.plan)
    path = frame_path(work, round_)
    rng = generator(round_, wave=round_.waves)
    frame = aimed(work, round_, path, _seen_by(sampler, path, round_), sample)
    drawn = sampler.next_batch(frame, round_.plan.budget, sample, rng)
    if len(drawn) == len(sample.draw):
        return False
    new = np.setdiff1d(drawn.unique_positions, sample.draw.positions)
    _queue(work, round_, path, drawn, new, state=RoundState.LABELLING)
    return True


def publish_draw(work: Toolbox, round_: Round) -> None:
    """drawn → labelling: the draw is also kept in MLflow."""
    if round_.draw is not None and round_.run_id is not None:
        path = work.round_folder(round_) / "draw.npz"
        path.write_bytes(round_.draw)
        work.registry.log_artifact(round_.run_id, path)
    with work.write() as connection:
        rounds.update(connection, round_.id, state=RoundState.LABELLING, problem=None)


def generator(round_: Round, wave: int) -> np.random.Generator:
    """The randomness of a wave: the same after a kill, another for each monitor, round and wave."""
    return np.random.default_rng([round_.plan.seed, zlib.crc32(round_.monitor.encode()), round_.number, wave])


def _seen_by(sampler: Sampler, path: Path, round_: Round) -> Frame:
    """The frame as far as the sampler looks at it, with the draws that its slices are promised."""
    layer, answers = sampler.activation_levels is not None, sampler.looks_at_predictions
    frame = read_frame(path, activations=layer, predictions=answers)
    if round_.slicing is None or not sampler.reserves:
        return frame
    return replace(frame, reserved=reserved_of(round_.slicing, path, round_.plan.budget))


def _queue(work: Toolbox, round_: Round, path: Path, drawn: Draw, chosen: NDArray[np.int64], state: str) -> None:
    """Make tasks of the ``chosen`` inputs, in random order, with all that is known of them, and gold among them."""
    if round_.plan.proxy is not None:
        drawn = with_proxy(work, round_, path, drawn)
    if round_.slicing is not None:
        drawn = with_slices(round_.slicing, path, drawn)
    if round_.plan.measures and round_.plan.problem == "classification":
        predicted = read_predicted(path)
        drawn = drawn.with_predicted(predicted) if len(predicted) <= MOST_PREDICTED else drawn
    ordered = np.sort(chosen)
    inputs = read_inputs(path, ordered)
    rows = fetch_table(work, round_, inputs)
    kept = capture(work, round_, ordered, rows)
    truth, known = work.settings.truth, dict[int, Known]()
    if truth is not None:
        known = truths_of_drawn(work, round_, truth, inputs.append_column(POSITION, pa.array(ordered)), rows)
    scores: Mapping[int, Numbers] = {}
    if round_.plan.measures:
        scores = chances_of_drawn(round_, ordered, inputs, scores_of_drawn(work, round_, ordered, rows))
    tasks = dict(zip(ordered.tolist(), _tasks(work, ordered, inputs, rows, kept, scores), strict=True))
    order = generator(round_, wave=1_000_000 + round_.waves).permutation(len(chosen))
    in_order = [tasks[int(chosen[k])] for k in order]
    asked = as_met(work, round_, in_order, generator(round_, wave=2_000_000 + round_.waves))
    now = work.clock()
    asks_at = _asks_at(work, round_, now)
    waits_from = now if asks_at is None or asks_at == NEVER else max(now, asks_at)
    with work.write() as connection:
        queue.queue(connection, work.name, round_.id, round_.waves, asked, now)
        problems = truths.record_drawn(connection, round_.id, known, now)
        rounds.update(
            connection,
            round_.id,
            state=state,
            draw=draws.pack_draw(drawn),
            waves=round_.waves + 1,
            asks_at=asks_at,
            urgent=round_.urgent or work.settings.labels.urgent,
            deadline_at=waits_from + work.settings.labels.max_wait,
            problem=None,
        )
    if problems:
        said = f"{'; '.join(problems[:3])}{'; …' if problems[3:] else ''}"
        log.warning("round %d of %s: truths that cannot be taken: %s", round_.number, work.name, said)


def _asks_at(work: Toolbox, round_: Round, now: datetime) -> datetime | None:
    """From when on annotators are asked; None: at once."""
    labels = work.settings.labels
    if labels.annotators == "none":
        return NEVER
    if labels.wait_for_truth is None:
        return None
    return min(round_.ends_at or round_.opened_at, now) + labels.wait_for_truth


def _tasks(
    work: Toolbox,
    positions: NDArray[np.int64],
    inputs: pa.Table,
    rows: pa.Table,
    kept: pa.Table,
    scores: Mapping[int, Numbers],
) -> Iterator[Asked]:
    """A task for each of the drawn inputs; a picture is shown as it is ``kept``, or by its name where it is not."""
    hidden, timestamp = work.settings.hidden, work.settings.columns.timestamp
    shows = work.settings.labels.show_prediction and work.settings.judged_column is None
    moments = [None] * rows.num_rows if timestamp is None else answered_at(rows, timestamp)
    pictured = [
        {name: cell if own[name] is None else own[name] for name, cell in row.items()}
        for row, own in zip(rows.to_pylist(), kept.to_pylist(), strict=True)
    ]
    listed = zip(positions.tolist(), inputs.to_pylist(), pictured, moments, strict=True)
    for position, known, row, at in listed:
        prediction = str(known["prediction"])
        shown = {queue.SHOWN: prediction} if shows else {}
        variables = {name.removeprefix(VARIABLE): known[name] for name in known if name.startswith(VARIABLE)}
        payload = payload_of(row, work.settings.columns, hidden, work.settings.judged_column) | shown
        own = scores.get(position)
        yield Asked(position, str(known["id"]), prediction, variables, payload, input_at=at, scores=own)
