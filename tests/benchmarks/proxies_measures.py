"""Every measure with proxies of every quality, side by side: what ``proxies.py --measures`` prints.

A proxy is somebody else's answer to every input of the frame: the truth, but for a share of the inputs, for which it is
that of another input. The share is such that what the measure would be of an input by the proxy (its linearised value)
has a correlation of 0.9, 0.7, 0.5 or 0 with what it is. "wrong" is a number beside: how likely the model is wrong, of
correlation 0.7 with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from opmon import plugins
from opmon.abc import Measure
from opmon.estimators.guesses import Guessed, Guesses
from opmon.estimators.measured import measured
from opmon.problems import Problem
from opmon.types import Floats, Frame, Sample
from opmon.types.labelled import Labelled
from tests.benchmarks.aiming import Population, aimed

QUALITIES = ("0.9", "0.7", "0.5", "0", "half missing 0.7", "wrong 0.7", "two phases 0.7")
BUDGET = 200
MEASURES: Mapping[Problem, tuple[tuple[str, Mapping[str, object]], ...]] = {
    "classification": (
        ("recall", {"class": "b"}),
        ("precision", {"class": "b"}),
        ("f1", {"class": "b"}),
        ("f1", {"average": "macro"}),
        ("f1", {"average": "weighted"}),
        ("balanced_accuracy", {}),
        ("cost", {"matrix": {"a": {"b": 1, "c": 2}, "b": {"a": 5, "c": 3}, "c": {"a": 1, "b": 1}}}),
        ("brier", {}),
        ("log_loss", {}),
        ("auc", {"class": "b"}),
        ("function", {"path": "tests.benchmarks.proxies_measures:right"}),
    ),
    "regression": (
        ("mean_absolute_error", {}),
        ("bias", {}),
        ("within_tolerance", {"tolerance": 1.0}),
        ("root_mean_squared_error", {}),
        ("mean_absolute_percentage_error", {}),
        ("r_squared", {}),
    ),
    "multilabel": (("hamming_loss", {}), ("recall", {"class": "b"}), ("f1", {"average": "macro"})),
    "judged": (("mean_score", {}), ("pass_rate", {})),
}


def right(truth: Floats, prediction: Floats, scores: object, weight: Floats) -> float:
    """A measure of one's own that is linear, and does not say so."""
    return float(np.average(truth == prediction, weights=weight))


@dataclass(frozen=True)
class Assisted:
    """What one proxy does to one measure."""

    design: str
    problem: str
    measure: str
    proxy: str
    bias: float
    """In standard errors of the estimate, as measured."""
    without_bias: float
    coverage: float
    without: float
    width: float
    """Relative to the labels alone: the median over the draws."""
    error: float
    """The root mean squared error relative to that of the labels alone."""
    correlation: float
    """Of what the proxy tells of the linearised values with what they are, over the frame."""

    @property
    def limit(self) -> float:
        """The least width that a linear correction by it can reach, relative to the labels alone."""
        return math.sqrt(1 - max(self.correlation, 0.0) ** 2)


@dataclass(frozen=True, eq=False)
class World:
    """A frame whose truth is known, with what else might have been true of each input."""

    problem: Problem
    frame: Frame
    rows: Labelled
    other: np.ndarray
    """The truths of other inputs, as a guess that knows nothing."""
    luck: Floats
    """Below the share of what it does not know, a guess of the truth is that of another input."""
    noise: Floats
    """Of a regression a guess of the truth errs by so much everywhere, up to a factor."""

    def guess(self, share: float) -> np.ndarray:
        if self.problem == "regression" and share < 1:
            return self.rows.truth + 3 * share / (1 - share) * self.noise
        lost = self.luck < share
        return np.where(lost[:, None] if self.rows.truth.ndim > 1 else lost, self.other, self.rows.truth)

    def linearised(self, measure: Measure, truth: np.ndarray, value: float) -> Floats:
        """The values whose correlation is that of the proxy."""
        rows = replace(self.rows, truth=truth)
        if measure.ratio(rows) is not None:
            ratio = measure.ratio(rows)
            assert ratio is not None
            return ratio.numerator - value * ratio.denominator
        found = measure.linearised(rows, np.full(len(rows), 1 / len(rows)))
        return (rows.truth == rows.predicted) * 1.0 if found is None else found


@cache
def world(problem: Problem, size: int) -> World:
    rng = np.random.default_rng(5)
    hard = rng.normal(size=size)
    variables = {"doubt": (1 / (1 + np.exp(-hard + 0.7 * rng.normal(size=size)))).astype(np.float32)}
    classes: tuple[str, ...] = ("a", "b", "c")
    scores: np.ndarray | None = None
    luck, order = rng.random(size), rng.permutation(size)
    if problem == "classification":
        truth = rng.choice(3, size, p=(0.55, 0.25, 0.2))
        logits = rng.normal(size=(size, 3)) * np.exp(0.5 * hard)[:, None]
        logits[np.arange(size), truth] += 1.8
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        names = np.array(classes)
        said, truth = names[scores.argmax(axis=1)], names[truth]
    elif problem == "regression":
        truth = 10 + 3 * rng.normal(size=size)
        truth = np.maximum(truth, 1.0)
        said = truth + 0.2 + np.exp(0.4 * hard) * rng.normal(size=size)
    elif problem == "multilabel":
        truth = rng.random((size, 3)) < (0.5, 0.3, 0.2)
        said = truth ^ (rng.random((size, 3)) < 0.1 + 0.15 * (hard > 0)[:, None])
    else:
        truth = np.round(np.clip(0.7 - 0.2 * hard + 0.15 * rng.normal(size=size), 0, 1), 1)
        said = np.full(size, np.nan)
    rows = Labelled(np.ones(size, np.bool_), truth, said, scores, classes if truth.dtype.kind in "Ub" else ())
    return World(
        problem, Frame(variables, predictions=None, size=size), rows, truth[order], luck, rng.normal(size=size)
    )


def share_for(place: World, measure: Measure, truth: float, correlation: float) -> float:
    """The share of inputs that a guess of this correlation knows nothing of."""
    u = place.linearised(measure, place.rows.truth, truth)
    low, high = 0.0, 1.0
    for _ in range(18):
        middle = (low + high) / 2
        v = place.linearised(measure, place.guess(middle), truth)
        found = np.corrcoef(u, v)[0, 1] if np.ptp(v) > 0 else 0.0
        low, high = (middle, high) if found > correlation else (low, middle)
    return (low + high) / 2


def losses(place: World) -> Floats:
    rows = place.rows
    if place.problem == "regression":
        return np.asarray((rows.truth - rows.predicted) ** 2)
    if place.problem == "judged":
        return np.asarray(1 - rows.truth)
    wrong = rows.truth != rows.predicted
    return np.asarray(wrong.any(axis=1) if wrong.ndim > 1 else wrong, dtype=np.float64)


def guessed_by(place: World, quality: str, measure: Measure, truth: float) -> Guessed:
    rows, size = place.rows, len(place.rows)
    if quality == "wrong 0.7":
        z = losses(place)
        noise = np.random.default_rng(9).normal(size=size) * z.std() * math.sqrt(1 / 0.49 - 1)
        value = z + noise
        if place.problem != "regression":
            value = (value - value.min()) / np.ptp(value)
        return Guessed(rows.predicted, np.maximum(value, 0.0), scores=rows.scores)
    share = 1.0 if quality == "0" else share_for(place, measure, truth, float(quality.split()[-1]))
    answer = place.guess(share)
    known = np.ones(size, np.bool_)
    if quality.startswith("half"):
        known = np.random.default_rng(8).random(size) < 0.5
    of = replace(place, rows=replace(rows, truth=answer))
    wrong = np.where(known, losses(of), np.nan)
    predicted = rows.predicted
    return Guessed(predicted, wrong, None if place.problem == "judged" else answer, known, rows.scores)


def told_by(place: World, of: Guessed, measure: Measure, truth: float) -> float:
    """The correlation of the proxy, as the estimator uses it, with the linearised values of all inputs."""
    size = len(place.rows)
    proxy = Guesses.of(place.problem, of, of, size, place.rows.classes).proxy(measure, truth)
    values = place.linearised(measure, place.rows.truth, truth)
    if proxy is None or np.ptp(proxy.value) <= 0:
        return 0.0
    return float(np.corrcoef(values, proxy.value)[0, 1])


def drawn(design: str, place: World, measure: Measure, budget: int, rng: np.random.Generator) -> Sample:
    """A sample by a design; ``aimed`` is the sampler adaptive that aims at the measure."""
    if design == "aimed":
        variables = {name: np.asarray(values) for name, values in place.frame.variables.items()}
        rows = place.rows
        own = Population("", rows.truth, rows.predicted, rows.classes, rows.scores, variables)
        return aimed(own, measure, budget, rng)
    sampler = plugins.make("sampler", design)
    z = losses(place)
    draw = sampler.draw(place.frame, budget, rng)
    while True:
        sample = Sample(draw, z[draw.positions], place.problem)
        if len(draw) >= budget:
            return sample
        draw = sampler.next_batch(place.frame, budget, sample, rng)


def only(of: Guessed, which: np.ndarray) -> Guessed:
    return Guessed(
        of.predicted[which],
        of.wrong[which],
        None if of.answer is None else of.answer[which],
        of.says[which],
        None if of.scores is None else of.scores[which],
    )


def study_measure(
    design: str, problem: Problem, name: str, keys: Mapping[str, object], repetitions: int, size: int = 20_000
) -> Iterator[Assisted]:
    """One measure with all proxies under one design."""
    place = world(problem, size)
    measure = plugins.make("measure", name, dict(keys))
    truth = float(measure.value(place.rows, np.full(size, 1 / size)))
    raw = measure.ratio(place.rows)
    inner = truth if raw is None else raw.value(np.full(size, 1 / size))
    proxies = {quality: guessed_by(place, quality, measure, inner) for quality in QUALITIES}
    if problem == "multilabel":
        proxies.pop("wrong 0.7")  # says nothing of single labels
    found: dict[str, list[tuple[float, bool, float]]] = {quality: [] for quality in ("", *proxies)}
    base = plugins.make("estimator", "adaptive" if design == "aimed" else design)
    for k in range(repetitions):
        rng = np.random.default_rng([k, 77])
        sample = drawn(design, place, measure, BUDGET, rng)
        rows = place.rows.only(sample.draw.positions)
        some = rng.choice(size, min(size, 5000), replace=False)
        for quality in found:
            guesses = None
            if quality:
                of = proxies[quality]
                reference = only(of, some) if quality.startswith("two") else of
                guesses = Guesses.of(problem, only(of, sample.draw.positions), reference, size, rows.classes)
            one = measured(base, sample, rows, measure, guesses=guesses)
            found[quality].append((one.value - truth, one.low <= truth <= one.high, one.high - one.low))
    own, own_held, own_width = (np.array(column) for column in zip(*found.pop(""), strict=True))
    for quality, row in found.items():
        errors, held, width = (np.array(column) for column in zip(*row, strict=True))
        yield Assisted(
            design,
            problem,
            measure.quantity().name,
            quality,
            float(errors.mean() / errors.std(ddof=1)),
            float(own.mean() / own.std(ddof=1)),
            float(held.mean()),
            float(own_held.mean()),
            float(np.median(width) / np.median(own_width)),
            float(np.sqrt((errors**2).mean() / (own**2).mean())),
            told_by(place, proxies[quality], measure, inner),
        )


def study_all(designs: tuple[str, ...], repetitions: int, size: int = 20_000) -> Iterator[Assisted]:
    for design in designs:
        for problem, measures in MEASURES.items():
            for name, keys in measures:
                yield from study_measure(design, problem, name, keys, repetitions, size)


def told_measure(line: Assisted) -> str:
    return (
        f"{line.design:9} {line.problem:14} {line.measure:22} {line.proxy:20} bias {line.bias:+5.2f} "
        f"(alone {line.without_bias:+5.2f}) s.e.  covers {line.coverage:6.1%} (alone {line.without:6.1%})  "
        f"width {line.width:5.3f}  error {line.error:5.3f}  "
        f"correlation {line.correlation:5.3f} (limit {line.limit:5.3f})"
    )
