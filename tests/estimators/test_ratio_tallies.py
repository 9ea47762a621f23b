"""Ratios from draws that aimed at them: one interval from the parts of the frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from opmon.estimators._skewed_score import cautious, skewed_score_bounds
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured, measured_tally
from opmon.estimators.ratio_tallies import HIDDEN_NOTE, ratio_bounds
from opmon.estimators.rolling import combine
from opmon.estimators.tally import Tally
from opmon.measures.f1 import F1Score
from opmon.measures.precision import Precision
from opmon.measures.recall import Recall
from opmon.store.tallies import pack, unpack
from opmon.types import Draw, Estimate, Labelled, Sample
from opmon.types.draw import KIND

CLASSES = ("ok", "fraud")


def drawn(found: int, wrong: int, missed: int, right: int, said: int, rest: int) -> tuple[Sample, Labelled]:
    """One stratum of ``said`` inputs predicted fraud and one of ``rest`` others, with what their labels say."""
    counts = np.array([found + wrong, missed + right])
    truth = np.repeat(["fraud", "ok", "fraud", "ok"], [found, wrong, missed, right])
    predicted = np.repeat(["fraud", "ok"], counts)
    stratum = np.repeat([0, 1], counts)
    draw = Draw(
        "adaptive",
        said + rest,
        np.concatenate([np.arange(counts[0]), said + np.arange(counts[1])]),
        {"stratum": stratum, "wave": np.zeros(len(stratum), dtype=np.int64)},
        {
            "stratum_size": np.array([said, rest]),
            "stratum_wave": np.zeros(2, dtype=np.int64),
            "wave_share": np.ones(1),
            KIND: np.array([1, 0]),
        },
    )
    sample = Sample(draw, (truth != predicted).astype(np.float64), "classification")
    return sample, Labelled(np.ones(len(truth), dtype=np.bool_), truth, predicted, None, CLASSES)


def test_recall_is_the_ratio_of_what_strata_stand_for() -> None:
    sample, rows = drawn(found=15, wrong=5, missed=4, right=36, said=100, rest=900)
    estimate = measured(AdaptiveEstimator(), sample, rows, Recall("fraud"))
    assert estimate.value == pytest.approx(75 / (75 + 90))
    assert estimate.method == "adaptive/ratio by parts"
    f1 = measured(AdaptiveEstimator(), sample, rows, F1Score("fraud"))
    assert f1.value == pytest.approx(2 * 75 / (2 * 75 + 25 + 90))


def test_precision_is_a_share_of_the_inputs_said_to_be_of_the_class() -> None:
    """Its only unknown is one share, so that its interval is that of a share."""
    sample, rows = drawn(found=15, wrong=5, missed=4, right=36, said=100_000, rest=900_000)
    estimate = measured(AdaptiveEstimator(), sample, rows, Precision("fraud"))
    low, high = skewed_score_bounds(np.ones(1), np.array([20.0]), np.array([15.0]), 0.95, cautious(0.95))
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.75, low, high), abs=2e-3)


def test_a_frame_that_was_drawn_whole_is_known() -> None:
    sample, rows = drawn(found=7, wrong=3, missed=2, right=28, said=10, rest=30)
    estimate = measured(AdaptiveEstimator(), sample, rows, Recall("fraud"))
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx((7 / 9, 7 / 9, 7 / 9), abs=1e-5)


def test_misses_that_may_hide_reach_down_and_are_told_with_what_would_end_them() -> None:
    sample, rows = drawn(found=55, wrong=5, missed=0, right=60, said=1_000, rest=99_000)
    estimate = measured(AdaptiveEstimator(), sample, rows, Recall("fraud"))
    assert estimate.value == 1.0
    assert estimate.low < 0.25  # three misses of 60 may hide among 99,000
    [note] = [note for note in estimate.notes if note.startswith(HIDDEN_NOTE)]
    assert "rounds like this one" in note
    sample, rows = drawn(found=55, wrong=5, missed=20, right=40, said=1_000, rest=99_000)
    estimate = measured(AdaptiveEstimator(), sample, rows, Recall("fraud"))
    assert not [note for note in estimate.notes if note.startswith(HIDDEN_NOTE)]


def note_of(estimate: Estimate) -> str:
    [note] = [note for note in estimate.notes if note.startswith(HIDDEN_NOTE)]
    return note


def test_of_few_predictions_all_can_be_labelled_instead_of_many_rounds() -> None:
    sample, rows = drawn(found=6, wrong=0, missed=4, right=110, said=30, rest=9_970)
    estimate = measured(AdaptiveEstimator(), sample, rows, Precision("fraud"))
    assert estimate.value == 1.0
    assert estimate.low < 0.8
    assert "30 inputs of which all labels so far say the same" in note_of(estimate)
    assert "labelling all 30 would end that" in note_of(estimate)
    assert "rounds" not in note_of(estimate)
    sample, rows = drawn(found=30, wrong=0, missed=4, right=110, said=30, rest=9_970)
    assert not measured(AdaptiveEstimator(), sample, rows, Precision("fraud")).notes


def test_the_rounds_that_it_takes_are_counted_over_all_that_are_joined() -> None:
    """Four rounds need as many labels as one of four times the draws: those of the note are all rounds together."""
    once = drawn(found=10, wrong=0, missed=2, right=20, said=50_000, rest=50_000)
    estimate = measured(AdaptiveEstimator(), *once, Precision("fraud"))
    assert "labels, would end that" in note_of(estimate)
    tally = measured_tally(AdaptiveEstimator(), *once, Precision("fraud"))
    four = combine([estimate] * 4, [tally] * 4)
    rounds, labels = (int(each.replace(",", "")) for each in re.findall(r"about ([0-9]+) .* or ([0-9,]+) labels",
                                                                         note_of(four))[0])  # fmt: skip
    assert rounds * 32 == labels
    assert "rounds like these" in note_of(four)


def tally_of(sample: Sample, rows: Labelled) -> Tally:
    tally = measured_tally(AdaptiveEstimator(), sample, rows, Recall("fraud"))
    assert tally is not None
    return tally


def test_rounds_make_the_recall_of_all_their_inputs() -> None:
    """Not the mean of their recalls: the round with more of the class counts for more."""
    one, two = drawn(15, 5, 4, 36, 100, 900), drawn(10, 10, 1, 39, 20, 980)
    estimates = [measured(AdaptiveEstimator(), *each, Recall("fraud")) for each in (one, two)]
    both = combine(estimates, [tally_of(*one), tally_of(*two)])
    assert both.value == pytest.approx((75 + 10) / (75 + 90 + 10 + 24.5))
    assert both.low < both.value < both.high
    assert both.half_width < max(each.half_width for each in estimates)
    ten = combine(estimates[:1] * 10, [tally_of(*one)] * 10)
    assert ten.half_width < 0.45 * estimates[0].half_width


def test_a_tally_is_kept_whole() -> None:
    tally = tally_of(*drawn(15, 5, 4, 36, 100, 900))
    kept = unpack(pack(tally))
    assert kept.is_ratio
    assert ratio_bounds([kept], [1.0], 0.95) == ratio_bounds([tally], [1.0], 0.95)


def test_draws_that_mix_kinds_get_the_interval_of_a_part() -> None:
    sample, rows = drawn(15, 5, 4, 36, 100, 900)
    mixed = Labelled(rows.answered, rows.truth, rows.predicted[::-1].copy(), None, CLASSES)
    estimate = measured(AdaptiveEstimator(), sample, mixed, Recall("fraud"))
    assert estimate.method == "adaptive/ratio"
    assert measured_tally(AdaptiveEstimator(), sample, mixed, Recall("fraud")) is None


def test_a_kind_without_an_answer_is_joined_and_no_longer_told_apart() -> None:
    sample, rows = drawn(15, 5, 4, 36, 100, 900)
    outcomes = sample.outcomes.copy()
    outcomes[:20] = np.nan
    silent = Sample(sample.draw, outcomes, "classification")
    answered = Labelled(silent.answered, rows.truth, rows.predicted, None, CLASSES)
    estimate = measured(AdaptiveEstimator(), silent, answered, Recall("fraud"))
    assert estimate.method == "adaptive/ratio"


def of_another_aim(predicted: Sequence[str], frame: Mapping[str, int]) -> tuple[Sample, Labelled]:
    """One stratum of all inputs, whose predictions are mixed: the draws aimed at no ratio. All of them are right."""
    said = np.array(predicted, np.str_)
    count, size = len(said), sum(frame.values())
    draw = Draw(
        "adaptive",
        size,
        np.arange(count),
        {"stratum": np.zeros(count, dtype=np.int64), "wave": np.zeros(count, dtype=np.int64)},
        {
            "stratum_size": np.array([size]),
            "stratum_wave": np.zeros(1, dtype=np.int64),
            "wave_share": np.ones(1),
            KIND: np.array([0]),
        },
    )
    rows = Labelled(np.ones(count, dtype=np.bool_), said.copy(), said, None, CLASSES)
    return Sample(draw, np.zeros(count), "classification"), rows


def test_answers_that_were_not_drawn_may_be_right() -> None:
    """None of the draws is said to be fraud, and 50 inputs are: nobody has seen whether they are."""
    sample, rows = of_another_aim(["ok"] * 40, {"ok": 950, "fraud": 50})
    truth = np.repeat(["fraud", "ok"], [4, 36])
    rows = Labelled(rows.answered, truth, rows.predicted, None, CLASSES)
    for draw in (sample.draw, sample.draw.with_predicted({"ok": 950, "fraud": 50})):
        estimate = measured(AdaptiveEstimator(), replace(sample, draw=draw), rows, Recall("fraud"))
        assert estimate.value == 0
        assert estimate.high > 0.3
    never = sample.draw.with_predicted({"ok": 1000})
    assert measured(AdaptiveEstimator(), replace(sample, draw=never), rows, Recall("fraud")).high == 0


def test_labels_that_were_not_drawn_may_be_right() -> None:
    """Of several labels at once nobody counts which are predicted in the frame."""
    sample, single = of_another_aim(["ok"] * 40, {"ok": 1000})
    predicted = np.tile([True, False], (40, 1))
    truth = predicted.copy()
    truth[:4, 1] = True
    rows = Labelled(single.answered, truth, predicted, None, CLASSES)
    for measure in (Recall("fraud"), F1Score("fraud")):
        assert measured(AdaptiveEstimator(), sample, rows, measure).high > 0.3
