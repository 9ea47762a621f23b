"""The difference of a measure between two models, on the same draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators.measured import measured
from opmon.estimators.paired import Pair, PairedDifference, holm, paired_difference
from opmon.quantities import BIAS, Quantity
from opmon.types import Draw, Sample
from opmon.types.labelled import Labelled

SRS = plugins.make("estimator", "srs")
SIZE = 4000
RNG = np.random.default_rng(3)
TRUTH = RNG.choice(["a", "b", "c"], SIZE, p=[0.6, 0.3, 0.1])
LUCK, OTHER = RNG.random(SIZE), RNG.choice(["a", "b", "c"], SIZE)
FIRST, SECOND = (np.where(share > LUCK, OTHER, TRUTH) for share in (0.3, 0.2))
NUMBERS = RNG.normal(size=SIZE)
NEAR, FAR = NUMBERS + 0.5 * RNG.normal(size=SIZE), NUMBERS + 0.3 + 0.7 * RNG.normal(size=SIZE)


def pair(positions: Any, truth: Any, first: Any, second: Any, size: int = SIZE, **slices: Any) -> Pair:
    draw = Draw("srs", size, np.asarray(positions) % size, constants={"replacement": np.array(False)})
    answered = np.ones(len(positions), np.bool_)
    classes = ("a", "b", "c") if truth.dtype.kind == "U" else ()
    one, two = (Labelled(answered, truth[positions], said[positions], None, classes) for said in (first, second))
    inside = {name: members[positions] for name, members in slices.items()}
    return Pair(SRS, Sample(draw, np.zeros(len(positions))), one, two, inside)


def drawn(seed: int, rounds: int = 2, each: int = 120, of: Any = (TRUTH, FIRST, SECOND)) -> list[Pair]:
    """Rounds of the same number of inputs, each drawn from its own part of the frame."""
    rng, parts = np.random.default_rng(seed), np.array_split(np.arange(SIZE), rounds)
    return [pair(rng.choice(part, each, replace=False), *of, size=len(part)) for part in parts]


@pytest.mark.parametrize(
    ("name", "keys", "of"),
    [
        ("accuracy", {}, (TRUTH, FIRST, SECOND)),
        ("recall", {"class": "b"}, (TRUTH, FIRST, SECOND)),
        ("f1", {"average": "macro"}, (TRUTH, FIRST, SECOND)),
        ("mean_absolute_error", {}, (NUMBERS, FAR, NEAR)),
        ("r_squared", {}, (NUMBERS, FAR, NEAR)),
        ("error_quantile", {"share": 0.5}, (NUMBERS, FAR, NEAR)),
    ],
)
def test_the_interval_holds_the_difference_and_is_narrower_than_that_of_two_samples(
    name: str, keys: dict[str, object], of: Any
) -> None:
    measure = plugins.make("measure", name, keys)
    quantity, truth = measure.quantity(), _of_all(measure, of)
    repetitions = 40 if name == "error_quantile" else 120
    errors, held, narrower = [], 0, []
    for seed in range(repetitions):
        pairs = drawn(seed, of=of)
        found = paired_difference(pairs, measure, quantity)
        errors.append(found.difference - truth)
        held += found.low <= truth <= found.high
        if seed < 10:
            each = [measured(SRS, pairs[0].sample, rows, measure) for rows in (pairs[0].first, pairs[0].second)]
            alone = np.hypot(*(one.half_width for one in each)) / 2**0.5
            narrower.append((found.high - found.low) / 2 / alone)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / repetitions**0.5 + 0.1 * np.std(errors)
    assert held >= (33 if repetitions == 40 else 105)  # binomial at 0.95: below this once in 1000 or less
    assert np.median(narrower) < 1.0


def _of_all(measure: Any, of: Any) -> float:
    whole = np.full(SIZE, 1 / SIZE)
    one = pair(np.arange(SIZE), *of)
    return float(measure.value(one.second, whole) - measure.value(one.first, whole))


def test_models_that_say_the_same_do_not_differ() -> None:
    found = paired_difference(
        drawn(1, of=(TRUTH, FIRST, FIRST)), plugins.make("measure", "accuracy"), Quantity("accuracy")
    )
    assert found == PairedDifference(found.first, found.first, 0.0, 0.0, 0.0, 240, 0, 1.0)


def test_of_a_bias_the_distance_from_zero_is_compared() -> None:
    under = NUMBERS - 0.1
    found = paired_difference(drawn(1, of=(NUMBERS, FAR, under)), plugins.make("measure", "bias"), BIAS)
    assert found.second == pytest.approx(-0.1)
    assert found.first > 0.15
    assert found.difference == pytest.approx(0.1 - found.first)
    assert found.high < 0


def test_a_slice_has_a_difference_of_its_own_and_one_without_answers_says_so() -> None:
    better = np.arange(SIZE) % 2 == 0
    second = np.where(better, TRUTH, FIRST)
    pairs = [pair(np.arange(0, SIZE, 17), TRUTH, FIRST, second, even=better, odd=~better, none=np.zeros(SIZE, bool))]
    measure, quantity = plugins.make("measure", "accuracy"), Quantity("accuracy", share=True)
    even, odd = (paired_difference(pairs, measure, quantity, within=name) for name in ("even", "odd"))
    assert even.low > 0.1
    assert odd.difference == 0
    assert even.labels + odd.labels == len(pairs[0].first)
    with pytest.raises(InputError, match="accuracy in none cannot be compared: no labelled draw counts for it"):
        paired_difference(pairs, measure, quantity, within="none")


def test_holm_names_what_differs_with_one_error() -> None:
    assert holm({"a": 0.001, "b": 0.02, "c": 0.03, "d": 0.5}, 0.05) == ("a",)
    assert holm({"a": 0.001, "b": 0.012, "c": 0.02, "d": 0.5}, 0.05) == ("a", "b", "c")
    assert holm({}, 0.05) == ()


class Broken(Measure):
    """A mean that is no number where somebody forgot to look."""

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity("broken")

    def value(self, rows: Labelled, weights: Any) -> float:
        return float("nan")


def test_what_is_no_number_names_no_winner() -> None:
    with pytest.raises(InputError, match="broken cannot be compared: it is nan of the first and nan of the second"):
        paired_difference(drawn(1), Broken(), Quantity("broken"))


def test_one_labelled_draw_is_counted_as_one() -> None:
    one = [pair(np.array([3]), TRUTH, FIRST, SECOND)]
    with pytest.raises(InputError, match="cannot be compared: 1 labelled draw counts for it"):
        paired_difference(one, plugins.make("measure", "accuracy"), Quantity("accuracy", share=True))
    with pytest.raises(InputError, match="no labelled draw counts for it; it wants the scores of both"):
        paired_difference(drawn(1), plugins.make("measure", "auc"), Quantity("AUC"))
