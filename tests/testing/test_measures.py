"""opmon's own measures under the suite for measures, and measures that break a promise, which it must find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Measure
from opmon.quantities import Quantity
from opmon.testing import check_measure
from opmon.testing.measures import CLASSES, made_up
from opmon.types import Array, Floats, Labelled
from tests.builtin import built_in

COSTS = {one: {other: 1.0 + 4 * (one == "a") for other in "abc" if other != one} for one in "abc"}
PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "recall": {"class": "a"},
    "precision": {"class": "b"},
    "f1": {"average": "macro"},
    "cost": {"matrix": COSTS},
    "within_tolerance": {"tolerance": 1.0},
    "function": {"path": "tests.testing.test_measures:right", "share": True},
}


def right(truth: Array, prediction: Array, scores: Array | None, weight: Floats) -> float:
    """A measure of one's own, for every problem: how often the model is right, or the truth above 0.75."""
    good = truth > 0.75 if truth.dtype.kind == "f" else truth == prediction
    return float(np.average(good if good.ndim == 1 else good.all(axis=1), weights=weight))


@pytest.mark.parametrize("name", built_in("measure"))
def test_measures(name: str) -> None:
    rows = made_up("classification", size=1000) if name == "function" else None  # 400 calls make an interval
    classes = ("a", "b") if name == "confusion_matrix" else CLASSES  # a suite for each cell
    check_measure(plugins.make("measure", name, PARAMETERS.get(name)), classes=classes, rows=rows)


@dataclass(frozen=True)
class Broken(Measure):
    """A measure that breaks a promise."""

    problems: ClassVar = ("regression",)

    how: str

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity("broken")

    def value(self, rows: Labelled, weights: Floats) -> float:
        if self.how == "scale":
            return float(weights @ rows.truth)
        if self.how == "order":
            return float(rows.truth[0])
        if self.how == "weights":
            return float(rows.truth.mean())
        if self.how == "changes":
            rows.truth[0] += 1
        return float(weights @ rows.truth / weights.sum())

    def linearised(self, rows: Labelled, weights: Floats) -> Floats | None:
        centred = rows.truth - float(weights @ rows.truth)
        return np.asarray({"influence": 2 * centred, "offset": centred + 1}.get(self.how, centred))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("scale", "depends on the scale of weights"),
        ("order", "depends on the order of rows"),
        ("weights", "a row of weight 2 counts otherwise than two rows"),
        ("changes", "changes what it is given"),
        ("influence", "the influence of row 0 is"),
        ("offset", "influences sum to 0"),
    ],
)
def test_a_broken_promise_is_found(how: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_measure(Broken(how))


def test_what_is_no_measure_is_told() -> None:
    with pytest.raises(AssertionError, match="does not subclass"):
        check_measure(object())  # type: ignore[arg-type]
