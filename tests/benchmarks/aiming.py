"""What the benchmarks of draws that aim at a measure have in common: populations with known truth, draws, figures."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.measures.f1 import F1Score
from opmon.measures.precision import Precision
from opmon.measures.recall import Recall
from opmon.samplers import Adaptive, SimpleRandom
from opmon.samplers.foresight import Seen, foresee, foresee_numbers, foresee_scores
from opmon.types import Draw, Estimate, Frame, Labelled, Problem, Sample

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
NOTHING = np.empty(0, np.int64)
PLAIN = 1500
"""Simple random samples whose values alone tell their error."""


@dataclass(frozen=True, eq=False)
class Population:
    """A frame whose truth is known: of classes or sets of them with the model's chances, or of numbers with auxiliary
    variables; of judged outputs the prediction is NaN."""

    name: str
    truth: NDArray[Any]
    predicted: NDArray[Any]
    classes: tuple[str, ...] = ()
    chances: Floats | None = None
    variables: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def problem(self) -> Problem:
        if self.classes:
            return "classification" if self.truth.ndim == 1 else "multilabel"
        return "judged" if np.isnan(self.predicted).all() else "regression"

    @cached_property
    def outcomes(self) -> Floats:
        if self.classes:
            wrong = self.truth != self.predicted
            return np.asarray(wrong if wrong.ndim == 1 else wrong.any(axis=1), dtype=np.float64)
        if self.problem == "judged":
            return np.asarray(1 - self.truth)
        return np.asarray((self.truth - self.predicted) ** 2, dtype=np.float64)

    def rows(self, positions: Places) -> Labelled:
        known = np.ones(len(positions), dtype=np.bool_)
        scores = None if self.chances is None else self.chances[positions]
        return Labelled(known, self.truth[positions], self.predicted[positions], scores, self.classes)

    def true(self, measure: Measure) -> float:
        quantile = measure.quantile(self.rows(np.arange(len(self))))
        if quantile is not None:
            return float(np.quantile(quantile.values, quantile.share, method="inverted_cdf"))
        return measure.value(self.rows(np.arange(len(self))), np.full(len(self), 1 / len(self)))

    def frame(self, measure: Measure, sample: Sample | None, seen: Places) -> Frame:
        """As the sampler sees it before a wave, ``seen`` being what was labelled so far, in all rounds."""
        frame = Frame(self.variables, predictions=self.predicted, size=len(self))
        if not self.classes:
            learn = foresee_numbers if self.problem == "regression" else foresee_scores
            foreseen = None if sample is None else learn(measure, frame, sample)
        else:
            wanted: dict[str, Floats] = {}
            if self.chances is not None:
                wanted = {name: self.chances[:, self.classes.index(name)] for name in measure.chances(self.classes)}
            of_seen = {name: values[seen] for name, values in wanted.items()}
            known = Seen(self.truth[seen], self.predicted[seen], of_seen) if len(seen) else None
            foreseen = foresee(measure, frame, wanted, self.classes, known, sample, self.problem)
        return Frame(self.variables, predictions=self.predicted, size=len(self), foreseen=foreseen)

    @cached_property
    def predicted_as(self) -> Counter[str]:
        return Counter(self.predicted.tolist())

    def sample(self, draw: Draw) -> Sample:
        draw = draw.with_predicted(self.predicted_as) if self.problem == "classification" else draw
        return Sample(draw, self.outcomes[draw.positions], self.problem)


def aimed(
    population: Population, measure: Measure, labels: int, rng: np.random.Generator, seen: Places = NOTHING
) -> Sample:
    """A sample of the adaptive sampler that aims at a measure; ``seen`` was labelled in rounds before."""
    sampler = Adaptive()
    sample = population.sample(sampler.draw(population.frame(measure, None, seen), labels, rng))
    while len(sample.draw) < labels:
        known = np.concatenate([seen, sample.draw.positions])
        frame = population.frame(measure, sample, known)
        sample = population.sample(sampler.next_batch(frame, labels, sample, rng))
    return sample


def plain(population: Population, labels: int, rng: np.random.Generator) -> Sample:
    """A simple random sample."""
    return population.sample(SimpleRandom().draw(Frame({}, size=len(population)), labels, rng))


def estimated(population: Population, sample: Sample, measure: Measure) -> Estimate | None:
    """The estimate of a measure; None where the sample has nothing that counts for it."""
    estimator = AdaptiveEstimator() if sample.draw.design == "adaptive" else SimpleRandomEstimator()
    try:
        return measured(estimator, sample, population.rows(sample.draw.positions), measure)
    except InputError:
        return None


@dataclass(frozen=True)
class Line:
    """Figures of one measure: of draws that aim, beside simple random sampling where a ratio is told."""

    data: str
    measure: str
    truth: float
    bias: float
    """In Monte Carlo standard errors."""
    rmse: float
    coverage: float
    half_width: float
    error_ratio: float
    width_ratio: float
    undefined: int
    """Simple random samples without anything that counts, which are left out."""


def compared(
    population: Population, aim: Measure, measures: Sequence[Measure], labels: int, repetitions: int, seed: int = 1
) -> list[Line]:
    """Draws that aim at ``aim``, and for each of the measures what became of it."""
    rng = np.random.default_rng(seed)
    ours, theirs = [], []
    for _ in range(repetitions):
        sample, random = aimed(population, aim, labels, rng), plain(population, labels, rng)
        ours.append([estimated(population, sample, measure) for measure in measures])
        theirs.append([estimated(population, random, measure) for measure in measures])
    pairs = zip(measures, zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
    return [
        _line(population, measure, own, other, plain_values(population, measure, labels))
        for measure, own, other in pairs
    ]


def plain_values(population: Population, measure: Measure, labels: int) -> Floats:
    """What a measure is of many simple random samples, without intervals: cheap, and so their error is known well. Of
    sizes of gaps the estimate is another: none."""
    rng, found = np.random.default_rng(99), []
    if measure.gaps(population.rows(np.arange(2))) is not None:
        return np.empty(0)
    for _ in range(PLAIN):
        rows = population.rows(rng.choice(len(population), labels, replace=False))
        with contextlib.suppress(InputError):
            found.append(measure.value(rows, np.full(labels, 1 / labels)))
    return np.array(found)


def _line(
    population: Population,
    measure: Measure,
    own: Sequence[Estimate | None],
    other: Sequence[Estimate | None],
    many: Floats,
) -> Line:
    truth = population.true(measure)
    got, plain_ones = [each for each in own if each is not None], [each for each in other if each is not None]
    values = np.array([each.value for each in got])
    error, plain_error = (
        float(np.sqrt(np.mean([(each.value - truth) ** 2 for each in some]))) for some in (got, plain_ones)
    )
    if len(many):
        plain_error = float(np.sqrt(np.mean((many - truth) ** 2)))
    width, plain_width = (float(np.mean([each.half_width for each in some])) for some in (got, plain_ones))
    return Line(
        population.name,
        measure.quantity().name,
        truth,
        float((values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values)))),
        error,
        float(np.mean([each.low - 1e-9 <= truth <= each.high + 1e-9 for each in got])),
        width,
        error / plain_error,
        width / plain_width,
        len(other) - len(plain_ones),
    )


RARE = "rare"


def rare(size: int, seed: int, *, apart: float = 3.5, overconfident: float = 1.0, hidden: float = 0.0) -> Population:
    """1 % positives whose scores are normal, ``apart`` standard deviations higher, with a threshold of recall 0.7.

    Chances are right, or their log odds ``overconfident`` times too large; ``hidden`` of the positives look like
    negatives.
    """
    rng = np.random.default_rng(seed)
    truth = rng.random(size) < 0.01
    score = rng.normal(size=size) + apart * (truth & (rng.random(size) >= hidden))
    odds = overconfident * (apart * score - apart**2 / 2 + np.log(0.01 / 0.99))
    name = "overconfident, some hidden" if hidden else "calibrated"
    return of_chances(name, 1 / (1 + np.exp(-odds)), truth)


def of_chances(name: str, chance: Floats, truth: NDArray[np.bool_]) -> Population:
    """A population of positives and others, predicted positive above the threshold whose recall is 0.7."""
    said = chance > np.quantile(chance[truth], 0.3)
    words = np.array(["other", RARE])
    chances = np.stack([1 - chance, chance], axis=1)
    variables = {"confidence": np.minimum(chance, 1 - chance).astype(np.float32)}
    return Population(name, words[truth.astype(int)], words[said.astype(int)], ("other", RARE), chances, variables)


def of_rare() -> tuple[Recall, Precision, F1Score]:
    return Recall(RARE), Precision(RARE), F1Score(RARE)
