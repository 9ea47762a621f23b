"""A judge is asked about inputs of a round, and what it holds of each is kept at once, by the input's content.

A registered model answers by opmon's own ways of scoring. Any other judge sees what an annotator would see: never the
model's own answer, and each input on its own. What an input says can therefore change what is held of that input and
of no other: at worst the proxy is useless for it, and the labels, which people give, correct that.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Opinion, Question
from opmon.config.kinds import JudgeSettings
from opmon.errors import UnavailableError
from opmon.problems import loss, traits
from opmon.stages.beside import fetch_table
from opmon.stages.frames import read_inputs
from opmon.stages.guesses import Said
from opmon.stages.judging_model import wrong_by_model
from opmon.stages.payloads import payload_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.truth import vocabulary_of
from opmon.store.rounds import Round
from opmon.types import Guide

log = logging.getLogger(__name__)

ROWS = 4096
"""So many inputs are read again from the log at a time."""
WAITS = "judge-waits"
"""The file that says since when the judge has not answered."""


def sample_of(round_: Round, size: int) -> NDArray[np.int64]:
    """The positions beside the drawn ones that a judge is asked about: a simple random sample of the frame, drawn
    independently of the draw; all of it where that is not more than the judge is asked about."""
    most = (round_.plan.proxy or {}).get("at_most")
    if most is None or most >= size:
        return np.arange(size)
    rng = np.random.default_rng([round_.plan.seed, zlib.crc32(round_.monitor.encode()), round_.number, 2_000_000])
    return np.sort(rng.choice(size, max(int(most) - round_.plan.budget, 1), replace=False))


def judged(work: Toolbox, round_: Round, path: Path, positions: NDArray[np.int64]) -> Said:
    """What the judge says of each of the positions, in ascending order.

    Raises UnavailableError while the round waits for one that does not answer; then goes on with what it said.
    """
    judge = work.settings.judge
    if judge is None or judge.identity != (round_.plan.proxy or {}).get("judge"):
        log.warning("round %d of %s was begun with another judge: it goes on without", round_.number, work.name)
        return Said(np.full(len(positions), np.nan))
    said = read_inputs(path, positions, ["prediction"])["prediction"]
    if judge.plugin.registered is not None:
        return wrong_by_model(work, round_, path, positions, judge.plugin.registered, said)
    waits = work.round_folder(round_) / WAITS
    try:
        found = opinions(work, round_, path, positions, judge)
        waits.unlink(missing_ok=True)
    except UnavailableError as exc:
        since = _waited_since(waits) or work.clock()
        waits.write_text(since.isoformat())
        if work.clock() < since + judge.wait:
            raise UnavailableError(f"{exc}; the round waits for the judge until {since + judge.wait:%H:%M}") from exc
        log.warning("round %d of %s goes on without its judge: %s", round_.number, work.name, exc)
        found = opinions(work, round_, path, positions, judge, only_kept=True)
    pairs = zip(said.to_pylist(), found, strict=True)
    wrong = np.array([wrongness(work, round_, str(prediction), each) for prediction, each in pairs])
    if not traits(round_.plan.problem).compares:
        return Said(wrong)
    answers = pa.array([None if each is None else named_answer(work, round_, each) for each in found], pa.string())
    return Said(wrong, answers)


def _waited_since(path: Path) -> datetime | None:
    """Since when a round has waited for its judge; None where it does not yet, or the file was cut off by a kill."""
    try:
        return datetime.fromisoformat(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def wrongness(work: Toolbox, round_: Round, prediction: str, opinion: Opinion | None) -> float:
    """How likely a prediction is wrong by an opinion, or its squared error; NaN without one."""
    if opinion is None:
        return float("nan")
    if opinion.scores and traits(round_.plan.problem).right_or_wrong:
        spelt = work.settings.spellings
        named = {spelt.name(name): score for name, score in opinion.scores.items()}
        return 1 - named.get(prediction, 0.0)
    answer = named_answer(work, round_, opinion)
    return float("nan") if answer is None else loss(answer, prediction, round_.plan.problem)


def named_answer(work: Toolbox, round_: Round, opinion: Opinion) -> str | None:
    """The class, or the number, that an opinion means; None where it is none that may be answered."""
    answer = opinion.answer
    if answer is None and opinion.scores:
        answer = max(opinion.scores, key=opinion.scores.__getitem__)
    if answer is None:
        return None
    named, _ = vocabulary_of(work.settings, round_.classes).named(pa.array([answer]))
    found = named[0].as_py()
    return None if found is None else str(found)


def opinions(
    work: Toolbox,
    round_: Round,
    path: Path,
    positions: NDArray[np.int64],
    judge: JudgeSettings,
    *,
    only_kept: bool = False,
) -> list[Opinion | None]:
    """What the judge holds of the inputs at ``positions``, in ascending order; None where it holds nothing."""
    kept = Kept(work.round_folder(round_) / f"judged-{judge.identity}.jsonl")
    asked: dict[int, str] = {}
    order = np.random.default_rng(len(positions)).permutation(len(positions))  # no wave or phase is asked about first
    for start in range(0, len(positions), ROWS):
        some = np.sort(positions[order[start : start + ROWS]])
        questions = list(_questions(work, round_, path, some))
        asked |= dict(zip(some.tolist(), (question.key for question in questions), strict=True))
        new = [] if only_kept else list({each.key: each for each in questions if each.key not in kept.said}.values())
        if new:
            mixed = np.random.default_rng(len(new)).permutation(len(new))
            kept.add(judge.plugin.answer([new[int(k)] for k in mixed], guide_of(work, round_)))
            missing = [each.key for each in new if each.key not in kept.said]
            if missing:
                raise UnavailableError(f"the judge {judge.type!r} left {len(missing)} of {len(new)} inputs unanswered")
    return [kept.said.get(asked[int(position)]) for position in positions]


def guide_of(work: Toolbox, round_: Round) -> Guide:
    """What annotators are told, with the classes of the model where the configuration names none."""
    guide = work.settings.guide
    return guide if guide.classes else replace(guide, classes=dict.fromkeys(round_.classes or (), ""))


def question_of(payload: Mapping[str, object]) -> Question:
    """A question, named by what is asked about."""
    text = json.dumps(payload, sort_keys=True, ensure_ascii=False, default=str)
    return Question(hashlib.sha256(text.encode()).hexdigest()[:32], payload)  # type: ignore[arg-type]


class Kept:
    """The opinions on a round's inputs, one line each in a file: what is in it was paid for, and is not asked again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: dict[str, Opinion] = {}
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            try:
                values = json.loads(line)
                self.said[values["key"]] = Opinion(values["key"], values["answer"], values["scores"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that a kill has cut in two

    def add(self, given: Iterator[Opinion]) -> None:
        """Keep opinions as they come, also those that come before an error."""
        with self.path.open("ab") as stream:
            if stream.tell():
                stream.write(b"\n")
            for opinion in given:
                values = {"key": opinion.key, "answer": opinion.answer, "scores": dict(opinion.scores)}
                stream.write(json.dumps(values, ensure_ascii=True).encode() + b"\n")
                stream.flush()
                self.said[opinion.key] = opinion


def _questions(work: Toolbox, round_: Round, path: Path, positions: NDArray[np.int64]) -> Iterator[Question]:
    """What an annotator would see of the inputs."""
    rows = fetch_table(work, round_, read_inputs(path, positions, ["slice", "row"]))
    for row in rows.to_pylist():
        yield question_of(payload_of(row, work.settings.columns, work.settings.hidden, work.settings.judged_column))
