"""The model at work: batches of production inputs in, predictions and auxiliary variables out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.scoring.inputs import Inputs, plan_inputs
from opmon.scoring.model import read_model, without_zipmap
from opmon.scoring.outputs import Answers, Outputs, Scores, plan_outputs
from opmon.scoring.session import Device, Session, open_session
from opmon.types import Batch, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What the model said of one batch. ``rows`` are row numbers in the slice, of the inputs that could be scored.

    ``predictions`` holds names of classes, or float64; ``variables`` one float32 per input, larger = more suspicious;
    ``rejected`` says why each of the other rows could not be scored.
    """

    slice_index: int
    rows: NDArray[np.int64]
    predictions: NDArray[Any]
    variables: Mapping[str, NDArray[np.float32]]
    rejected: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class Scorer:
    """A model that is loaded, and how its inputs and outputs are to be read. Made by :meth:`open`."""

    session: Session
    outputs: Outputs
    features: tuple[str, ...] | None = None
    tensor: str | None = None
    batch_size: int = 1024
    allow_missing: bool = False
    _plans: dict[pa.Schema, Inputs] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        path: Path,
        problem: Problem,
        classes: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
        tensor: str | None = None,
        device: Device = "auto",
        threads: int | None = None,
        batch_size: int = 1024,
        output: str | None = None,
        scores: Scores = "auto",
        allow_missing: bool = False,
    ) -> Scorer:
        """Load the ONNX file ``path``.

        ``classes`` are the names of the score's columns where the file does not say them (or says numbers);
        ``features`` and ``tensor`` name the columns that are fed; ``output`` and ``scores`` override what the graph
        tells.
        ``allow_missing`` feeds null as NaN, to a model that knows what to do with it.
        """
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1; got {batch_size}")
        if problem not in ("classification", "regression"):
            raise InputError(f"problem must be classification or regression; got {problem!r}")
        model = read_model(path)
        plain = without_zipmap(model)
        session = open_session(path if plain is None else plain.SerializeToString(), device, threads)
        outputs = plan_outputs(model if plain is None else plain, session.outputs, problem, classes, output, scores)
        return cls(session, outputs, tuple(features) if features else None, tensor, batch_size, allow_missing)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the score's columns, where they are known."""
        return self.outputs.classes

    def describe(self) -> dict[str, Any]:
        """What ``opmon check`` shows of it."""
        return {
            "device": self.session.device,
            "providers": list(self.session.providers),
            "inputs": [str(tensor) for tensor in self.session.inputs],
            "outputs": [str(tensor) for tensor in self.session.outputs],
            "score": f"{self.outputs.score} ({self.outputs.meaning})",
            "classes": list(self.classes) if self.classes is not None else None,
        }

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]:
        """One answer for each batch, in order."""
        for batch in batches:
            if batch.rows.num_rows:
                yield self._score(batch)

    def columns(self, batch: pa.RecordBatch) -> tuple[str, ...]:
        """The columns that are read of batches such as this one."""
        return self._plan(batch).columns

    def _score(self, batch: Batch) -> Scored:
        fed = self._plan(batch.rows).tensors(batch.rows)
        answers = [self.outputs.read(results) for results in self._run(fed.tensors, len(fed.rows))]
        rejected = {batch.first_row + row: reason for row, reason in fed.rejected.items()}
        if not answers:
            return Scored(batch.slice_index, np.empty(0, np.int64), self._no_predictions(), {}, rejected)
        whole = _joined(answers)
        rows = batch.first_row + fed.rows
        for row in rows[~whole.valid].tolist():
            rejected[row] = "the model's answer is not a number"
        if not whole.valid.all():
            kept = {name: values[whole.valid] for name, values in whole.variables.items()}
            whole = Answers(whole.predictions[whole.valid], kept, whole.valid)
            rows = rows[whole.valid]
        return Scored(batch.slice_index, rows, whole.predictions, whole.variables, rejected)

    def _run(self, tensors: Mapping[str, NDArray[Any]], count: int) -> Iterator[list[Any]]:
        """The outputs for pieces of ``batch_size`` rows, or of the size that is fixed in the model."""
        fixed = next((tensor.shape[0] for tensor in self.session.inputs if tensor.shape), None)
        size = fixed or self.batch_size
        for start in range(0, count, size):
            piece = {name: values[start : start + size] for name, values in tensors.items()}
            have = min(size, count - start)
            if fixed and have < fixed:
                piece = {name: np.resize(values, (fixed, *values.shape[1:])) for name, values in piece.items()}
            results = self.session.run(self.outputs.names, piece)
            yield [result[:have] for result in results]

    def _plan(self, batch: pa.RecordBatch) -> Inputs:
        plan = self._plans.get(batch.schema)
        if plan is None:
            plan = plan_inputs(self.session.inputs, batch, self.features, self.tensor, self.allow_missing)
            self._plans[batch.schema] = plan
        return plan

    def _no_predictions(self) -> NDArray[Any]:
        return np.empty(0, np.float64 if self.outputs.problem == "regression" else np.str_)


def _joined(answers: Sequence[Answers]) -> Answers:
    if len(answers) == 1:
        return answers[0]
    names = answers[0].variables
    return Answers(
        np.concatenate([answer.predictions for answer in answers]),
        {name: np.concatenate([answer.variables[name] for answer in answers]) for name in names},
        np.concatenate([answer.valid for answer in answers]),
    )
