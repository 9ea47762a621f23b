"""Quality of every test: measured where the test was run, predicted beyond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.robustness.quality import Quality
from opmon.robustness.run import Progress, Subject
from opmon.robustness.space import Space, Tests
from opmon.robustness.surrogates.gaussian_process import Interactions, fit
from opmon.types import Floats


@dataclass(frozen=True, eq=False)
class Graded:
    """One distance per test of the whole space; ``error`` is 0 where it was measured."""

    value: Floats
    error: Floats


def grade(
    subject: Subject, quality: Quality, run: Tests, space: Space, count: int, progress: Progress | None = None
) -> Graded:
    """The distance of every test from the unperturbed inputs, on the first ``count`` of them."""
    original = subject.evaluation.inputs[:count]
    chains = run.chains()
    distances: dict[tuple[tuple[int, int], ...], float] = {}
    for pieces, inputs in subject.batches(run, [(list(range(len(run))), 0, count)]):
        for place, (row, _, _) in enumerate(pieces):
            perturbed = inputs[place * count : (place + 1) * count]
            distances[chains[row]] = quality(perturbed, original) if chains[row] else 0.0
        if progress is not None:
            progress("quality", len(distances), len(run))
    return predicted_quality(space, distances)


def predicted_quality(space: Space, distances: dict[tuple[tuple[int, int], ...], float]) -> Graded:
    """The surrogate of the root of the distance: additive with pairs as the mean, the largest pair as a second opinion,
    and the same Gaussian process of interactions as for shares."""
    tests = space.tests()
    keys = tests.chains()
    root = {key: float(np.sqrt(max(value, 0.0))) for key, value in distances.items()}
    value, error = np.zeros(len(tests)), np.zeros(len(tests))
    for row, key in enumerate(keys):
        if key in distances:
            value[row] = distances[key]
    beyond = np.flatnonzero(tests.order >= 3)
    if not len(beyond):
        return Graded(value, error)
    features = np.array([_opinions(keys[row], root) for row in beyond.tolist()])
    size = max(float(np.std(list(root.values()))), 1e-9) / 0.15  # to the scale of shares
    rows = [place for place, row in enumerate(beyond.tolist()) if keys[row] in root]
    mean = features.mean(axis=1)
    residual = np.array([root[keys[beyond[place]]] for place in rows]) - mean[rows]
    apart = (features - mean[:, None]) / size
    process = Interactions(tests.take(beyond), apart, space.levels, np.zeros((len(beyond), 1)))
    fitted = fit(process, rows, residual / size, 1e-8 * np.eye(len(rows)), 0.9)
    guess = np.maximum(mean + size * fitted.mean, 0)
    spread = size * fitted.stretch * np.sqrt(fitted.variance)
    open_ = np.array([keys[row] not in distances for row in beyond.tolist()])
    value[beyond[open_]] = guess[open_] ** 2
    error[beyond[open_]] = 2 * guess[open_] * spread[open_]
    return Graded(value, error)


def _opinions(key: tuple[tuple[int, int], ...], root: dict[tuple[tuple[int, int], ...], float]) -> tuple[float, float]:
    singles = {step: root[(step,)] for step in key}
    pairs = [(a, b, root[(a, b)]) for i, a in enumerate(key) for b in key[i + 1 :]]
    together = sum(singles.values()) + sum(both - singles[a] - singles[b] for a, b, both in pairs)
    return max(together, 0.0), max(both for *_, both in pairs)
