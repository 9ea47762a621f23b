from __future__ import annotations

import pytest

from opmon.estimators.changes import Change
from opmon.quantities import ACCURACY, MEAN_SCORE, Quantity, mean_squared_error
from opmon.queries.drift_words import Compared, told
from opmon.types import Estimate
from opmon.types.drifting import DriftedPart, Loss, SliceDrift

MOVED = (DriftedPart("inputs", 12, ("age", "income")), DriftedPart("predictions", 1, ()))
STILL = (DriftedPart("inputs", 12, ()),)


def said(parts: tuple[DriftedPart, ...], loss: Loss, by: tuple[float, float, float], quantity: Quantity) -> str:
    estimate = Estimate(0.8, 0.75, 0.85, 100, 1000, 1.0, "srs", quantity=quantity)
    change = Change(*by, now=0.8, before=0.9)
    return " ".join(told(parts, loss, Compared(change, estimate, (1, 2, 3), True, 0), ()))


def test_what_drifted_and_with_what_loss() -> None:
    words = said(MOVED, "loss", (0.1, 0.04, 0.16), ACCURACY)
    assert "Of the inputs 2 of 12 columns drifted: age, income." in words
    assert "The predictions did not drift." in words
    assert "accuracy is 10 points worse than in the 3 rounds before in which no drift was seen" in words
    assert "(95 % interval: 4 to 16 points worse)" in words


@pytest.mark.parametrize(
    ("by", "range_"),
    [
        ((0.01, -0.02, 0.04), "2 points better to 4 points worse"),
        ((-0.05, -0.08, -0.02), "2 to 8 points better"),
        ((0.01, float("-inf"), 0.04), "any amount better to 4 points worse"),
    ],
)
def test_the_interval_says_which_way(by: tuple[float, float, float], range_: str) -> None:
    assert f"(95 % interval: {range_})" in said(MOVED, "none seen", by, ACCURACY)


def test_a_loss_without_drift_is_told_and_numbers_have_units() -> None:
    words = said(STILL, "loss", (4.0, 1.0, 7.0), mean_squared_error("days"))
    assert "Nothing drifted that the tests can tell." in words
    assert "The model became worse without drift that the tests see: mean squared error is 4" in words
    assert "days² worse" in words


def test_without_an_estimate_or_rounds_before_it_is_not_known() -> None:
    assert (
        "before the round has a final estimate" in told(MOVED, "not known", Compared(None, None, (), True, 0), ())[-1]
    )
    estimate = Estimate(0.8, 0.75, 0.85, 100, 1000, 1.0, "srs")
    assert "no earlier round of this model version" in " ".join(
        told(MOVED, "not known", Compared(None, estimate, (), True, 0), ())
    )


def test_losses_of_slices_have_as_many_digits_as_they_bear() -> None:
    estimate = Estimate(0.68, 0.62, 0.73, 80, 400, 1.0, "srs", quantity=MEAN_SCORE)
    worse = SliceDrift("lang de", 0.3, 0.3, 0, (), 0.24223, 0.11661)
    words = told(STILL, "none seen", Compared(None, estimate, (1,), True, 3), [worse])[-1]
    assert "lang de (by 0.24, at least 0.12)" in words


def test_what_was_counted_has_no_interval() -> None:
    words = said(MOVED, "loss", (0.006, 0.006, 0.006), ACCURACY)
    assert words.endswith(
        "accuracy is 0.6 points worse than in the 3 rounds before in which no drift was seen (counted over all inputs)."
    )
    same = said(MOVED, "none seen", (0.0, 0.0, 0.0), ACCURACY)
    assert "No loss is seen with it: accuracy is the same as in the 3 rounds before" in same


def test_a_slice_that_was_counted_has_no_bound() -> None:
    estimate = Estimate(0.8, 0.8, 0.8, 1000, 1000, 1.0, "census", quantity=mean_squared_error("€"))
    slices = (SliceDrift("city 北京", 0.3, 0.3, 0, (), 954_376_314.0, 954_376_314.0),)
    change = Change(1.0, 1.0, 1.0, now=0.8, before=0.9)
    words = told(STILL, "loss", Compared(change, estimate, (1, 2), True, 6), slices)
    assert words[-1] == (
        "Worse than before, counted over all of their inputs, which may be chance: city 北京 (by 954,376,314 €²)."
    )


def test_small_numbers_are_written_out() -> None:
    words = said(MOVED, "loss", (5e-05, 1e-05, 9e-05), mean_squared_error("mg/dL"))
    assert "0.00005 (mg/dL)² worse" in words
    assert "e-0" not in words
