"""Answers that production logged itself, scores and all: no model is loaded, or even needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.problems import Problem, traits
from opmon.scoring.inputs.anything import beginnings
from opmon.scoring.inputs.classes import class_names, decided, is_said, plain_numbers
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.inputs.scores import Misfit, scores_of
from opmon.scoring.inputs.sets import logged_sets
from opmon.scoring.outputs.meaning import Meaning, Outputs, Scores
from opmon.scoring.outputs.sets import HALF, scores_in, sets_of, variables_of_sets
from opmon.scoring.outputs.variables import variables_of
from opmon.scoring.outputs.vocabulary import other_words, strays_of, too_many
from opmon.scoring.scored import Scored
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array, Batch, Json, Numbers


@dataclass(frozen=True)
class LoggedColumns:
    """The columns in which a log keeps production's answers.

    ``prediction`` is the answer itself, or with a ``threshold`` the score that decided between two classes. ``scores``
    are one for each class: a column each, or one column with a list, a struct, a map or text with JSON; one number is
    that of the second of two classes. Without ``prediction`` the class with the greatest score was answered.
    """

    prediction: str | None = None
    scores: tuple[str, ...] = ()
    threshold: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys((*([self.prediction] if self.prediction else []), *self.scores)))


@dataclass
class LoggedScorer:
    """Scores batches by the answers in columns of the log."""

    columns: LoggedColumns
    problem: Problem = "classification"
    classes: tuple[str, ...] | None = None
    spellings: Spellings = AS_SPELT
    meaning: Scores = "auto"
    keeps_scores: bool = False
    """Whether the scores are given with the answers."""
    threshold: float = HALF
    """The score from which on a class holds, where several may."""
    _strays: Counter[str] = field(default_factory=Counter)
    _said: int = 0
    _fits: bool = False
    """Whether any input had a score that is wanted."""
    _misfit: Misfit | None = None

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        """One answer for each batch, in order; an error at the end where answers are none of the classes, or where no
        input has a score that is wanted."""
        self._begin()
        for batch in batches:
            if batch.rows.num_rows:
                yield self._answered(batch)
        if too_many(self._strays.total(), self._said):
            what = f"column {self.columns.prediction!r} holds predictions that are"
            words = other_words(what, list(self._strays.elements()), self._said, self.classes or ())
            raise SourceError(
                f"{words} Say what each is called with 'classes', or name the column that holds the class"
            )
        if self._misfit is not None and not self._fits:
            raise self._misfit

    def _begin(self) -> None:
        self._strays, self._said, self._fits, self._misfit = Counter(), 0, False, None

    def keeping_scores(self) -> LoggedScorer:
        """The same, with the probabilities of all classes in its answers."""
        return replace(self, keeps_scores=True, _strays=Counter(), _said=0)

    def _answered(self, batch: Batch) -> Scored:
        rejected: dict[int, str] = {}
        variables: dict[str, NDArray[np.float32]] = {}
        scores: Numbers | None = None
        unlike, unscored, holds = 0, 0, traits(self.problem)
        if holds.of_numbers:
            predictions, good = self._numbers(batch.rows, rejected)
        elif not holds.compares:
            predictions, good = self._outputs(batch.rows, rejected)
        elif not holds.one_class:
            predictions, good, variables, unlike, unscored, scores = self._several(batch.rows, rejected)
        else:
            predictions, good, variables, unlike, unscored, scores = self._classified(batch.rows, rejected)
        rows = batch.first_row + np.flatnonzero(good)
        return Scored(
            batch.slice_index,
            rows.astype(np.int64),
            predictions[good],
            {name: values[good] for name, values in variables.items()},
            {batch.first_row + row: reason for row, reason in rejected.items()},
            None,
            unlike,
            self.classes,
            scores=None if scores is None else scores[good],
            unscored=unscored,
        )

    def _numbers(self, rows: pa.RecordBatch, rejected: dict[int, str]) -> tuple[Array, NDArray[np.bool_]]:
        name = self.columns.prediction or self.columns.scores[0]
        column = decoded(_column(rows, name))
        said = is_said(name, column)
        _reject(rejected, ~said, f"column {name!r} is empty")
        numbers = np.full(rows.num_rows, np.nan)
        numbers[said] = plain_numbers(name, column.filter(pa.array(said)))
        return numbers, said

    def _outputs(self, rows: pa.RecordBatch, rejected: dict[int, str]) -> tuple[Array, NDArray[np.bool_]]:
        """What people will judge, whatever it is, as the beginning of its text: an empty text is an output, too."""
        name = self.columns.prediction or ""
        column = decoded(_column(rows, name))
        there: NDArray[np.bool_] = np.asarray(column.is_valid())
        _reject(rejected, ~there, f"column {name!r} is empty")
        return beginnings(column), there

    def _several(
        self, rows: pa.RecordBatch, rejected: dict[int, str]
    ) -> tuple[Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], int, int, Numbers | None]:
        """The classes that hold, as they were logged, or else those whose score is high enough."""
        names, name = self.columns.scores, self.columns.prediction
        variables: dict[str, NDArray[np.float32]] = {}
        by_score, valid, kept = np.empty(0, dtype=object), np.zeros(rows.num_rows, dtype=bool), None
        if names:
            matrix, classes = self._logged(rows)
            self.classes = self.classes or classes or (names if len(names) > 1 else None)
            scores, valid = scores_in(matrix, names[0], self.meaning == "logits")
            numbered = self.classes or tuple(map(str, range(scores.shape[1])))
            by_score, variables = sets_of(scores, self.threshold, numbered), variables_of_sets(scores, self.threshold)
            self.classes = numbered if valid.any() else self.classes
            kept = np.where(valid[:, None], scores, np.nan).astype(np.float32) if self.keeps_scores else None
        if name is None:
            _reject(rejected, ~valid, f"column {names[0]!r} has no scores from 0 to 1")
            return by_score, valid, variables, 0, 0, kept
        said = logged_sets(name, _column(rows, name), self.classes, self.spellings)
        rejected.update(said.rejected)
        self._said += int(said.known.sum()) + len(said.strays)
        self._strays.update(said.strays.values())
        unlike = int((by_score != said.sets)[said.known & valid].sum()) if names else 0
        unscored = int((said.known & ~valid).sum()) if names else 0
        return said.sets, said.known, variables, unlike, unscored, kept

    def _classified(
        self, rows: pa.RecordBatch, rejected: dict[int, str]
    ) -> tuple[Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], int, int, Numbers | None]:
        count = rows.num_rows
        variables: dict[str, NDArray[np.float32]] = {}
        best: Array | None = None
        scores: Numbers | None = None
        valid = np.zeros(count, dtype=bool)
        if self.columns.scores:
            best, valid, variables, scores = self._scored(rows)
        name = self.columns.prediction
        if name is None:
            assert best is not None
            _reject(rejected, ~valid, f"column {self.columns.scores[0]!r} has no scores, or no probabilities")
            return best, valid, variables, 0, 0, scores
        column = decoded(_column(rows, name))
        said = is_said(name, column)
        _reject(rejected, ~said, f"column {name!r} is empty")
        given = column.filter(pa.array(said))
        answers = (
            class_names(name, given, self.spellings)
            if self.columns.threshold is None
            else decided(name, plain_numbers(name, given), self.columns.threshold, self.classes)
        )
        self._said += len(answers)
        strays = strays_of(answers, self.classes)
        for row, text in zip(np.flatnonzero(said)[strays].tolist(), answers[strays].tolist(), strict=True):
            rejected[row] = f"column {name!r} holds {text!r}, which is none of the classes"
            self._strays[text] += 1
        threshold = self.columns.threshold
        if self.keeps_scores and scores is None and threshold is not None and 0 <= threshold <= 1:
            scores = _of_second(plain_numbers(name, given), said)
        predictions = np.full(count, "", answers.dtype if answers.dtype.itemsize else np.dtype("<U1"))
        predictions[said] = answers
        good = said.copy()
        good[np.flatnonzero(said)[strays]] = False
        unlike = 0 if best is None else int((best != predictions)[good & valid].sum())
        unscored = 0 if best is None else int((good & ~valid).sum())
        return predictions, good, variables, unlike, unscored, scores

    def _scored(
        self, rows: pa.RecordBatch
    ) -> tuple[Array, NDArray[np.bool_], dict[str, NDArray[np.float32]], Numbers | None]:
        """The class with the greatest score, where there are scores, and the variables that come with them.

        Where there are none, all classes count as equally likely: nothing is more suspicious.
        """
        names = self.columns.scores
        matrix, classes = self._logged(rows)
        if self.classes is None:
            self.classes = classes
        meaning: Meaning = "probabilities" if self.meaning == "auto" else self.meaning
        outputs = Outputs(self.problem, names[0], None, meaning, classes, keeps_scores=self.keeps_scores)
        there: NDArray[np.bool_] = np.asarray(np.isfinite(matrix).all(axis=1))
        count, width = len(matrix), max(matrix.shape[1], 2)
        best: Array = np.full(count, "", np.str_)
        flat = {name: values[0] for name, values in variables_of(np.full((1, width), 1 / width)).items()}
        variables: dict[str, NDArray[np.float32]] = {
            name: np.full(count, value, np.float32) for name, value in flat.items()
        }
        if not there.any():
            return best, there, variables, None
        answers = outputs.read([matrix[there]])
        best = np.full(count, "", answers.predictions.dtype)
        best[there] = answers.predictions
        valid = there.copy()
        valid[there] = answers.valid
        for name, values in answers.variables.items():
            variables[name][valid] = values[answers.valid]
        self.classes = self.classes or answers.classes
        return best, valid, variables, _spread(answers.scores, there, valid)

    def _logged(self, rows: pa.RecordBatch) -> tuple[Numbers, tuple[str, ...] | None]:
        """The scores as they were logged; NaN for all where none are those that are wanted."""
        columns, one_class = [_column(rows, name) for name in self.columns.scores], traits(self.problem).one_class
        try:
            matrix, classes = scores_of(self.columns.scores, columns, self.classes, self.spellings, one_class)
        except Misfit as exc:
            self._misfit = exc if self._misfit is None and exc.rows else self._misfit
            matrix, classes = np.empty((rows.num_rows, 0)), self.classes
        if not matrix.shape[1]:
            return np.full((rows.num_rows, max(1, len(self.classes or ()))), np.nan), classes
        self._fits |= bool(np.isfinite(matrix).any())
        return matrix, classes

    def describe(self) -> dict[str, Json]:
        """The facts that ``opmon check`` shows."""
        facts: dict[str, Json] = {"answers": f"column {self.columns.prediction or self.columns.scores[0]}"}
        if self.columns.scores:
            facts["scores"] = f"{', '.join(self.columns.scores[:6])} ({self.meaning})"
        return facts | {"classes": None if self.classes is None else list(self.classes)}


def _spread(scores: Numbers | None, there: NDArray[np.bool_], valid: NDArray[np.bool_]) -> Numbers | None:
    """Scores of the rows that have some, for all rows; NaN where a row has none."""
    if scores is None:
        return None
    whole = np.full((len(there), scores.shape[1]), np.nan, np.float32)
    whole[there] = scores
    whole[~valid] = np.nan
    return whole


def _of_second(numbers: Array, said: NDArray[np.bool_]) -> Numbers:
    """The scores of two classes by a column with that of the second."""
    second = np.full(len(said), np.nan, np.float32)
    second[said] = numbers
    return np.column_stack([1 - second, second])


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    index = rows.schema.get_field_index(name)
    if index < 0:
        raise SourceError(f"the inputs have no column {name!r}; they have: {', '.join(rows.schema.names)}")
    return rows.column(index)


def _reject(rejected: dict[int, str], rows: NDArray[np.bool_], reason: str) -> None:
    rejected.update(dict.fromkeys(np.flatnonzero(rows).tolist(), reason))


def column_names(columns: Sequence[str] | str | None) -> tuple[str, ...]:
    """One name or several."""
    return () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
