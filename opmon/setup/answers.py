"""The column of a log that holds production's answers, found by comparing columns with the model's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import OpmonError
from opmon.jobs.served import skew_of_numbers
from opmon.scoring.inputs.classes import class_names, is_said, plain_numbers
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_answer, is_score, is_truth
from opmon.setup.vocabulary import Held, clashes, held, spelt, threshold_of
from opmon.setup.world import Answers
from opmon.wording import percent

_ENOUGH, _SURE = 0.7, 0.95
"""A column called an answer must agree with the model on so much; another one on so much more."""


@dataclass(frozen=True)
class Said:
    """Findings about production's answers: keys to set, and remarks."""

    choices: tuple[Choice, ...] = ()
    remarks: tuple[str, ...] = ()


def answered(log: Log, names: Sequence[str], answers: Answers, problem: str, classes: Sequence[str]) -> Said:
    """The column with production's answers among ``names``, and its names for the classes or its threshold."""
    remarks: list[str] = []
    for name in sorted(names, key=lambda each: (not is_answer(each), is_truth(each))):
        try:
            found = (
                _number(log, name, answers)
                if problem == "regression"
                else _class(log, name, answers, classes) or _score(log, name, answers, classes)
            )
        except OpmonError:  # no answers at all
            continue
        if found is not None and found.choices:
            return Said(found.choices, (*remarks, *found.remarks))
        remarks += [] if found is None else found.remarks
    return Said((), tuple(remarks))


def _known(log: Log, name: str, answers: Answers) -> tuple[pa.Array, NDArray[np.bool_]]:
    column = log.column(name).take(pa.array(answers.rows))
    known = is_said(name, column)
    return column.filter(pa.array(known)), known


def _class(log: Log, name: str, answers: Answers, classes: Sequence[str]) -> Said | None:
    if log.is_fraction(name) or log.different(name) > max(len(classes), 2):
        return None
    column, known = _known(log, name, answers)
    if not len(column):
        return None
    found = held(class_names(name, column), answers.predictions[known].astype(np.str_), classes)
    agrees = f"the same as the model's answers on {percent(found.share)} of the rows looked at"
    if found.tells and found.share >= (_ENOUGH if is_answer(name) else _SURE):
        if is_truth(name) and found.share < 1:
            return None
        return _spelt(name, found, classes, agrees)
    if is_answer(name):
        return Said((), (_unlike(name, found),))
    return None


def _unlike(name: str, found: Held) -> str:
    return (
        f"column {name!r} is called like production's answers, and agrees with the model's on "
        f"{percent(found.share)} of the rows: it is left out. Was it this model version, and these inputs? Then set "
        f"columns.prediction, and raise round.max_skew"
    )


def _spelt(name: str, found: Held, classes: Sequence[str], agrees: str) -> Said:
    spellings = spelt(classes, found.names)
    if spellings is None:
        return Said((Choice(("columns", "prediction"), name, agrees),))
    if clashes(spellings):
        told = ", ".join(f"{own} is called {word}" for word, own in found.names.items() if word != own)
        return Said((), (
            f"column {name!r} uses the model's own words for other classes ({told}, on {percent(found.share)} of the "
            f"rows): it is left out. Log the classes as the model calls them, or under names of their own",
        ))  # fmt: skip
    words = ", ".join(f"the log's {word} is the model's {own}" for word, own in list(found.names.items())[:4])
    more = ", …" if len(found.names) > 4 else ""
    kept: dict[str, object] = {name: _plain(others[0]) if others else [] for name, others in spellings.items()}
    return Said((
        Choice(("columns", "prediction"), name, agrees),
        Choice(("classes",), kept, f"{words}{more}: {agrees}"),
    ))  # fmt: skip


def _plain(text: str) -> int | str:
    """The text as an int if it is a whole number, which reads better than in quotes."""
    return int(text) if text.isdigit() and str(int(text)) == text else text


def _score(log: Log, name: str, answers: Answers, classes: Sequence[str]) -> Said | None:
    """The score from which on the second of two classes is answered."""
    if len(classes) != 2 or not log.is_fraction(name) or not (is_score(name) or is_answer(name)):
        return None
    column, known = _known(log, name, answers)
    numbers = plain_numbers(name, column)
    second = answers.predictions[known].astype(np.str_) == classes[1]
    if not len(numbers) or second.all() or not second.any():
        return None
    threshold, share = threshold_of(numbers, second)
    if share < _SURE:
        return None
    why = f"from there on the model answers {classes[1]} ({percent(share)} of the rows): did production decide there?"
    return Said((
        Choice(("columns", "prediction"), name, f"a score of the class {classes[1]}"),
        Choice(("columns", "threshold"), threshold, why, guessed=True),
    ))  # fmt: skip


def _number(log: Log, name: str, answers: Answers) -> Said | None:
    if not log.is_number(name):
        return None
    column, known = _known(log, name, answers)
    said, own = plain_numbers(name, column), answers.predictions.astype(np.float64)
    if not len(said):
        return None
    whole = own.copy()
    whole[known] = said
    skew = skew_of_numbers(name, known, whole, own)
    apart, differs = skew.apart / skew.logged, skew.differs / skew.logged
    if apart <= 1 - _ENOUGH if is_answer(name) else differs <= 1 - _SURE:
        why = f"within rounding of the model's answers on {percent(1 - differs)} of the rows looked at"
        return Said((Choice(("columns", "prediction"), name, why),))
    return Said((), tuple(_other_unit(name, said, own[known]))) if is_answer(name) else None


def _other_unit(name: str, said: NDArray[np.float64], own: NDArray[np.float64]) -> Iterator[str]:
    """A remark that a column is the model's answer times a factor, or is not its answer."""
    some = np.abs(own) > 1e-9
    ratio = said[some] / own[some]
    times = float(np.median(ratio)) if len(ratio) else 0.0
    if len(ratio) and times and np.mean(np.abs(ratio / times - 1) < 0.01) > _SURE:
        yield f"column {name!r} is {times:.4g} times the model's answers: another unit, so that it is left out"
    else:
        yield f"column {name!r} is called like production's answers and is far from the model's: it is left out"
