"""Fitting a reference on training data that streams through the model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Head, Training
from opmon.errors import InputError, ModelError
from opmon.scoring.graph.compiled import columns_of
from opmon.scoring.graph.file import read_model
from opmon.scoring.graph.layers import find_layer
from opmon.scoring.outputs.vocabulary import other_words, strays_of, too_many
from opmon.scoring.reference._kept import Kept, KeptRows
from opmon.scoring.reference.densities import densities
from opmon.scoring.reference.distances import crowd, distances_to_others, distinct, floored, nearest
from opmon.scoring.reference.fitted import Reference, model_hash
from opmon.scoring.scored import Traced
from opmon.scoring.scorer import Scorer
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Array, Batch, Problem
from opmon.values import canonical_classes
from opmon.wording import counted, told

LIMIT = 60_000
BYTES = 256 << 20
"""A reference of very wide layers holds fewer traces, so that the compiled graph stays loadable."""
_ASKED = 10_000
"""The most traces from which the limits of the variables are taken."""
_INPUTS = 20_000
"""The most inputs that the variables learn from."""


@dataclass
class Truth:
    """A count of how often the model was right on the training inputs with a label."""

    count: int = 0
    loss: float = 0.0

    def add(
        self,
        predictions: Array,
        truth: pa.Array,
        column: str,
        classes: tuple[str, ...] | None = None,
        spellings: Spellings = AS_SPELT,
    ) -> None:
        """Compare answers with labels; an error where labels are none of the model's classes, so never right."""
        known = np.asarray(truth.is_valid())
        values = truth.to_pandas().to_numpy(dtype=object)[known]
        given = predictions[known]
        if given.dtype.kind == "f":
            self.count += len(values)
            self.loss += float(((_numbers(values, column) - given) ** 2).sum())
            return
        names = spellings.named(canonical_classes(values))
        strays = strays_of(names, classes)
        if too_many(int(strays.sum()), len(names)):
            words = other_words(
                f"column {column!r} holds labels that are", names[strays].tolist(), len(names), classes or ()
            )
            raise InputError(f"{words} Name the column with the model's own names in --label, or leave it out")
        self.count += int((~strays).sum())
        self.loss += float((names != given)[~strays].sum())

    @property
    def accuracy(self) -> float | None:
        return 1 - self.loss / self.count if self.count else None


def _numbers(values: Array, column: str) -> NDArray[np.float64]:
    try:
        return values.astype(np.float64)
    except ValueError as exc:
        raise InputError(f"column {column!r} does not hold numbers ({exc}), and the model answers numbers") from exc


@dataclass
class Fit:
    """Fits a reference to batches that pass; ``scorer`` must be opened with ``traced``."""

    scorer: Scorer
    path: Path
    layer: str | None
    limit: int = LIMIT
    seed: int = 0
    label: str | None = None
    heads: Sequence[Head] = ()
    """The variables that learn from the training data."""
    truth: Truth = field(default_factory=Truth)
    seen: int = 0
    received: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Why rows could not be scored, and how many for each reason."""
    sampled: int = 10_000
    """The most rows that are kept for drift reports: columns of single values, and the model's prediction."""
    _passing: dict[int, pa.RecordBatch] = field(default_factory=dict)
    _sample: KeptRows | None = None

    def __post_init__(self) -> None:
        if self.limit < 2:
            raise InputError(f"a reference holds at least 2 traces; got limit={self.limit}")

    def run(self, batches: Iterable[Batch]) -> Reference:
        """Read everything once, and fit."""
        kept = Kept(self.limit, np.random.default_rng([self.seed, 0]))
        inputs = Kept(min(self.limit, _INPUTS), np.random.default_rng([self.seed, 1]))
        self._sample = KeptRows(self.sampled, np.random.default_rng([self.seed, 3]))
        for part in self.scorer.traces(self._numbered(batches), self.refused):
            self._look_at_rows(part)
            self.seen += len(part.rows)
            kept.limit = max(2, min(self.limit, BYTES // (4 * max(1, part.activations.shape[1]))))
            kept.add(part.activations, part.predicted)
            if self.heads:
                values = next(iter(part.tensors.values()))
                inputs.add(values.reshape(len(values), -1), np.zeros(len(values), np.int64))
        traces, predicted = kept.result()
        if len(traces) < 2:
            why = f": {told(self.refused)}" if self.refused else ""
            raise ModelError(
                f"{len(traces)} of {counted(self.received, 'training input')} could be scored{why}. A reference needs "
                f"at least 2: correct how the inputs are read, or name other data"
            )
        training = Training(inputs.result()[0] if self.heads else np.empty((0, 0)), traces, predicted)
        by_name = {head.fitted_as: head for head in self.heads}
        learned = {name: head.fit(training, self.seed) for name, head in by_name.items() if name is not None}
        return self._fitted(traces, predicted, learned)

    @property
    def sample(self) -> pa.Table:
        """A random sample of the rows that were read: drift reports compare production with it."""
        return pa.table({}) if self._sample is None else self._sample.result()

    def _numbered(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches under running numbers; their single values are set aside until the model has answered."""
        for batch in batches:
            if self.label is not None and self.label not in batch.rows.schema.names:
                raise InputError(
                    f"the training data has no column {self.label!r}; it has: {', '.join(batch.rows.schema.names)}"
                )
            single = [item.name for item in batch.rows.schema if not pa.types.is_nested(item.type)]
            self._passing[self.received] = batch.rows.select(single)
            yield Batch(0, self.received, batch.rows)
            self.received += batch.rows.num_rows

    def _look_at_rows(self, part: Traced) -> None:
        """Compare the answers with the labels, and keep some of the rows."""
        if not len(part.rows) or self._sample is None:
            return
        first = max(start for start in self._passing if start <= part.rows[0])
        rows = self._passing.pop(first).take(pa.array(part.rows - first))
        if self.label is not None:
            spellings = self.scorer.outputs.spellings
            self.truth.add(part.predictions, rows.column(self.label), self.label, part.classes, spellings)
        names = [item.name for item in rows.schema if item.name != self.label and not pa.types.is_binary(item.type)]
        kept = pa.Table.from_batches([rows.select(names)])
        self._sample.add(kept.append_column("model prediction", pa.array(part.predictions)))

    def _fitted(
        self,
        traces: NDArray[np.float32],
        predicted: NDArray[np.int64],
        learned: Mapping[str, Mapping[str, Array]],
    ) -> Reference:
        outputs = self.scorer.outputs
        score = next(item for item in self.scorer.session.outputs if item.name == outputs.score)
        columns, _ = columns_of(outputs, score)
        plain_distances = not columns or self.layer is None
        distances = np.full(len(traces), np.inf) if plain_distances else distances_to_others(traces, predicted)
        plain = Reference(
            model_hash(self.path),
            self.layer,
            outputs.problem,
            columns,
            traces,
            predicted,
            distances,
            seen=self.seen,
            accuracy=self.truth.accuracy,
            labelled=self.truth.count,
            weights=learned,
        )
        return plain if self.layer is None else with_limits(plain, np.random.default_rng([self.seed, 2]))


def with_limits(reference: Reference, rng: np.random.Generator) -> Reference:
    """The reference with the limits of DSA and LSA on its own traces, each without itself, and with its crowds."""
    values: dict[str, list[NDArray[np.float64]]] = {"dsa:reference": [], "dsa:input": [], "lsa": []}
    kept, fitted = densities(reference)
    divisors = floored(reference.distances)
    share = min(1.0, _ASKED / len(reference.traces))
    for number in reference.classes:
        rows = reference.of_class(number)
        if len(rows) < 3:
            continue
        asked = np.sort(rng.permutation(len(rows))[: max(1, round(share * len(rows)))])
        own = reference.traces[rows]
        if reference.columns and len(reference.classes) > 1:
            distance, which = nearest(own[asked], own, asked)
            values["dsa:reference"].append(distance / divisors[rows[which]])
            values["dsa:input"].append(distance / divisors[rows[asked]])
        values["lsa"].append(fitted[number].surprise(own[asked][:, kept].astype(np.float64), asked))
    limits = {
        name: (float(min(map(np.min, parts))), float(max(map(np.max, parts))))
        for name, parts in values.items()
        if parts
    }
    own_traces = {number: reference.traces[reference.of_class(number)] for number in reference.classes}
    crowds = {number: crowd(traces[distinct(traces)]) for number, traces in own_traces.items()}
    return dataclasses.replace(reference, limits=limits, crowds=crowds if reference.columns else {})


def open_fit(
    path: Path,
    problem: Problem,
    layer: str | None = None,
    limit: int = LIMIT,
    label: str | None = None,
    heads: Sequence[Head] = (),
    seed: int = 0,
    **options: Any,
) -> Fit:
    """A fit of the model in ``path``, and of the ``heads`` that learn; ``options`` are those of :meth:`Scorer.open`.

    A model without hidden layers can still have variables that look at its inputs alone: its traces are then empty.
    """
    try:
        scorer = Scorer.open(path, problem, traced=True, layer=layer, **options)
        name: str | None = find_layer(read_model(path), scorer.outputs.score, layer).name
    except ModelError:
        if not heads or layer is not None:
            raise
        scorer, name = Scorer.open(path, problem, **options), None
    return Fit(scorer, path, name, limit, seed, label, heads)
