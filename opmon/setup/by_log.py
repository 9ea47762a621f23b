"""The configuration for production's logged answers, where no model is run."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError, OpmonError
from opmon.scoring.inputs.classes import class_names, is_said, plain_numbers
from opmon.scoring.inputs.lists import is_listed
from opmon.scoring.inputs.scores import scores_of
from opmon.setup.by_outputs import by_outputs
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_answer, is_score, is_truth
from opmon.setup.vocabulary import held, threshold_of

_MOST = 1000
"""More different answers than that are no classes."""
_NUMBERS = 20
"""More different whole numbers than that are numbers."""


def by_log(log: Log) -> tuple[list[Choice], tuple[str, ...]]:
    """The keys of a monitor of logged answers, and the columns that they name."""
    outputs = by_outputs(log)
    if outputs is not None:
        return outputs
    answer = _answer(log)
    scores = _scores(log, answer)
    if answer is None and not scores:
        raise InputError(
            "the log has no column that is called like production's answers (prediction, predicted, answer, output …) "
            "or its scores"
        )
    base = [Choice(("scoring",), {"by": "logged"}, "no model is run: production's own answers are judged")]
    if answer is not None and _are_numbers(log, answer) and not (scores and not is_score(answer)):
        return [*base, *_of_numbers(log, answer)], (answer,)
    choices = [*base, Choice(("problem",), "classification", "the answers are words, or a few whole numbers")]
    if answer is not None:
        choices.append(Choice(("columns", "prediction"), answer, f"{log.different(answer)} different answers"))
    if scores:
        choices.append(Choice(("columns", "scores"), list(scores), "production's own scores"))
    return [*choices, *_classes(log, answer, scores)], tuple(filter(None, (answer, *scores)))


def _answer(log: Log) -> str | None:
    names = [name for name in log.rows.column_names if not pa.types.is_nested(log.column(name).type)]
    names = [name for name in names if log.says(name)]
    called = [name for name in names if is_answer(name) and log.different(name) < max(log.rows.num_rows, 2)]
    fractions = [name for name in names if is_answer(name) and log.is_number(name)]
    return next(iter([*called, *fractions]), None)


def _scores(log: Log, answer: str | None) -> tuple[str, ...]:
    names = [name for name in log.rows.column_names if name != answer and not is_truth(name)]
    for name in names:
        kind = log.column(name).type
        if is_score(name) and (is_listed(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)):
            return (name,)
    single = [name for name in names if is_score(name) and log.is_fraction(name)]
    groups: dict[str, list[str]] = {}
    for name in single:
        groups.setdefault(re.split(r"[_.\d]", name)[0], []).append(name)
    largest = max(groups.values(), key=len, default=[])
    if len(largest) > 1:
        return tuple(largest)
    return _shares(log, [name for name in names if log.is_fraction(name)]) or tuple(single[:1])


def _shares(log: Log, names: Sequence[str]) -> tuple[str, ...]:
    """Adjacent columns that sum to one in every row, whatever their names: a score for each class."""
    values = {name: plain_numbers(name, log.column(name)) for name in names if log.column(name).null_count == 0}
    beside = [name for name in values if ((values[name] >= 0) & (values[name] <= 1)).all()]
    for count in range(len(beside), 1, -1):
        for start in range(len(beside) - count + 1):
            chosen = beside[start : start + count]
            if np.allclose(sum(values[name] for name in chosen), 1, atol=1e-3):
                return tuple(chosen)
    return ()


def _are_numbers(log: Log, name: str) -> bool:
    return log.is_fraction(name) or (log.is_whole(name) and log.different(name) > _NUMBERS)


def _of_numbers(log: Log, name: str) -> list[Choice]:
    """A value of its own, or the probability of the second of two classes."""
    values = plain_numbers(name, log.column(name).drop_null())
    if not ((values >= 0) & (values <= 1)).all():
        return [
            Choice(("problem",), "regression", "production's answers are numbers"),
            Choice(("columns", "prediction"), name, "the only answer that is logged"),
        ]
    return [
        Choice(("problem",), "classification", f"{name} is between 0 and 1: problem: regression if it is no score"),
        Choice(("columns", "prediction"), name, "taken for the score of the second of two classes"),
        Choice(("columns", "threshold"), 0.5, "from where on production says the second class", guessed=True),
        Choice(("columns", "scores"), [name]),
        Choice(("classes",), ["0", "1"], "what labels will say: the other one, then the one that is scored", True),
    ]


def _classes(log: Log, answer: str | None, scores: Sequence[str]) -> list[Choice]:
    """The names of the classes, in the order of the scores."""
    if answer is None:
        return _of_scores_alone(log, scores)
    column = log.column(answer)
    said = is_said(answer, column)
    words = class_names(answer, column.filter(pa.array(said)))
    names = sorted(set(words.tolist()), key=lambda word: (len(word) if word.isdigit() else 0, word))
    if len(names) > _MOST:
        raise InputError(f"column {answer!r} has {len(names)} different answers: a class has a name of its own")
    if not scores:
        return [Choice(("classes",), names, "what the log says: add those that it does not say", guessed=True)]
    return [Choice(("classes",), *_in_order(log, words, np.flatnonzero(said), names, scores))]


def _of_scores_alone(log: Log, scores: Sequence[str]) -> list[Choice]:
    if len(scores) > 1:
        return [Choice(("classes",), [_end(name, scores) for name in scores], "from the names of the columns")]
    matrix, classes = scores_of(scores, [log.column(name) for name in scores], None)
    names = list(classes or map(str, range(max(matrix.shape[1], 2))))
    return [Choice(("classes",), names, "in the order of the scores", guessed=classes is None)]


def _in_order(
    log: Log, words: NDArray[np.str_], rows: NDArray[np.int64], names: Sequence[str], scores: Sequence[str]
) -> tuple[list[str], str, bool]:
    """The words in the order of the scores: by the names of columns or fields, or by which score is the greatest."""
    ends = [_end(name, scores) for name in scores]
    if len(scores) > 1 and set(names) <= set(ends):
        return ends, "from the names of the columns with the scores", False
    try:
        matrix, classes = scores_of(scores, [log.column(name) for name in scores], None)
    except OpmonError:
        return list(names), "in the order of the scores", True
    if classes is not None:
        return list(classes), "from the names of the fields", False
    if matrix.shape[1] == 1 and len(names) == 2:
        means = [float(np.nanmean(matrix[rows][words == name])) for name in names]
        ordered = [names[place] for place in np.argsort(means)]
        _, share = threshold_of(matrix[rows, 0], words == ordered[1])
        return ordered, f"{ordered[1]} is answered where the score is high", share < 0.9
    best = matrix[rows].argmax(axis=1).astype(np.str_)
    places = [str(place) for place in range(matrix.shape[1])]
    if set(names) <= set(places) and (best == words).mean() > 0.5:
        return places, "numbers of the scores", False
    found = held(words, best, places)
    back = {place: word for word, place in found.names.items()}
    ordered = [back.get(place, f"class {place}") for place in places]
    return ordered, "in the order of the scores: the greatest one is that of the answer", not found.tells


def _end(name: str, others: Sequence[str]) -> str:
    """The part of a column's name that the other columns' names lack.

    >>> [_end(name, ["p_cat", "p_dog"]) for name in ("p_cat", "p_dog")]
    ['cat', 'dog']
    """
    if len(others) < 2:
        return name
    common = 0
    while all(len(other) > common and other[common] == name[common] for other in others):
        common += 1
    return name[max(name.rfind("_", 0, common), name.rfind(".", 0, common)) + 1 :]
