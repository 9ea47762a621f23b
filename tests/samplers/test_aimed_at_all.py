"""What is foreseen of measures of scores, of several labels, of errors and of judgements."""

from __future__ import annotations

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import _expecting
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured, measured_gain
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.measures.auc import AreaUnderCurve
from opmon.measures.average_precision import AveragePrecision
from opmon.measures.brier import Brier
from opmon.measures.calibration_error import CalibrationError
from opmon.measures.error_quantile import ErrorQuantile
from opmon.measures.hamming_loss import HammingLoss
from opmon.measures.log_loss import LogLoss
from opmon.measures.mean_absolute_error import MeanAbsoluteError
from opmon.measures.mean_absolute_percentage_error import MeanAbsolutePercentageError
from opmon.measures.pass_rate import PassRate
from opmon.measures.recall import Recall
from opmon.measures.subset_accuracy import SubsetAccuracy
from opmon.samplers import Adaptive
from opmon.samplers.foresight import Seen, foresee, foresee_numbers, foresee_scores
from opmon.types import Draw, Frame, Labelled, Sample
from opmon.types.draw import KIND
from opmon.types.prospect import Foreseen, Prospect

TWO = ("ok", "fraud")


def scored(chance: np.ndarray, score: np.ndarray) -> Prospect:
    both, own = {"ok": 1 - chance, "fraud": chance}, {"ok": 1 - score, "fraud": score}
    return Prospect((score > 0.5).astype(int), TWO, both, scores=own)


def of_three(chances: np.ndarray) -> Prospect:
    """Inputs with three labels each, of which the likely ones are predicted."""
    return Prospect(chances > 0.5, tuple("abc"), dict(zip("abc", chances.T, strict=True)), problem="multilabel")


def found(foreseen: Foreseen | None) -> Foreseen:
    assert foreseen is not None
    return foreseen


def test_the_brier_score_is_foreseen_by_hand() -> None:
    chance, score = np.array([0.8, 0.5, 0.1]), np.array([0.9, 0.5, 0.3])
    foreseen = found(Brier().foresee(scored(chance, score)))
    expected = chance * (1 - score) ** 2 + (1 - chance) * score**2
    assert foreseen.mean == pytest.approx(expected - expected.mean(), abs=1e-6)
    assert foreseen.spread == pytest.approx(np.sqrt(chance * (1 - chance)) * np.abs(1 - 2 * score), abs=1e-6)


def test_the_area_under_the_curve_is_foreseen_by_hand() -> None:
    """Of two inputs with scores 0.2 and 0.8 that are fraud with chances 1/4 and 3/4."""
    foreseen = found(AreaUnderCurve("fraud").foresee(scored(np.array([0.25, 0.75]), np.array([0.2, 0.8]))))
    below, area = np.array([3 / 8, 7 / 8]), 3 / 4  # the share of others with a lower score, and its mean over frauds
    true, other = (below - area) / 0.5, (below[::-1] - area) / 0.5
    chance = np.array([0.25, 0.75])
    assert foreseen.mean == pytest.approx(chance * true + (1 - chance) * other, abs=1e-6)
    assert foreseen.spread == pytest.approx(np.sqrt(chance * (1 - chance)) * np.abs(true - other), abs=1e-6)


@pytest.mark.parametrize("measure", [Brier(), LogLoss(), AreaUnderCurve("fraud"), AveragePrecision("fraud")])
def test_inputs_of_which_the_same_is_known_are_worth_the_same(measure: AreaUnderCurve) -> None:
    foreseen = found(measure.foresee(scored(np.full(50, 0.3), np.full(50, 0.4))))
    assert np.ptp(foreseen.spread) <= 1e-5 * foreseen.spread.max()
    assert np.ptp(foreseen.mean) <= 1e-5


def test_draws_by_even_chances_are_simple_random_ones() -> None:
    foreseen = found(LogLoss().foresee(scored(np.full(1000, 0.5), np.full(1000, 0.4))))
    draw = Adaptive(waves=1).draw(Frame({}, size=1000, foreseen=foreseen), 100, np.random.default_rng(0))
    sizes = draw.constants["stratum_size"]
    assert (sizes / np.bincount(draw.columns["stratum"], minlength=len(sizes)) == 10).all()


def test_wrong_labels_are_foreseen_by_hand() -> None:
    chances = np.array([[0.9, 0.2, 0.1], [0.6, 0.5, 0.0]])
    wrong = np.array([[0.1, 0.2, 0.1], [0.4, 0.5, 0.0]])
    hamming = found(HammingLoss().foresee(of_three(chances)))
    assert hamming.spread == pytest.approx(np.sqrt((wrong * (1 - wrong)).sum(axis=1)) / 3, abs=1e-6)
    assert np.diff(hamming.mean) == pytest.approx(np.diff(wrong.mean(axis=1)), abs=1e-6)
    right = np.prod(1 - wrong, axis=1)
    subset = found(SubsetAccuracy().foresee(of_three(chances)))
    assert subset.spread == pytest.approx(np.sqrt(right * (1 - right)), abs=1e-6)
    assert np.diff(subset.mean) == pytest.approx(np.diff(right), abs=1e-6)


def test_the_recall_of_one_label_wants_its_chance_alone_and_tells_kinds_apart() -> None:
    chance = np.array([0.9, 0.8, 0.3, 0.1])
    said = np.stack([np.array([True, False, True, False]), chance > 0.5], axis=1)
    foreseen = found(Recall("b").foresee(Prospect(said, ("a", "b"), {"b": chance}, problem="multilabel")))
    assert foreseen.kind[0] == foreseen.kind[1] != foreseen.kind[2] == foreseen.kind[3]
    value = np.where(said[:, 1], 1 - 1.7 / 2.1, -1.7 / 2.1) / (2.1 / 4)
    assert foreseen.spread == pytest.approx(np.sqrt(chance * (1 - chance)) * np.abs(value), rel=1e-5)


def test_how_often_outputs_pass_is_foreseen_by_hand() -> None:
    given = {"0.25": np.array([0.5, 0.1]), "0.75": np.array([0.3, 0.5]), "1.0": np.array([0.2, 0.4])}
    foreseen = found(PassRate(0.75).foresee(Prospect(np.full(2, np.nan), (), given, problem="judged")))
    passes = np.array([0.5, 0.9])
    assert foreseen.mean == pytest.approx(passes - 0.7, abs=1e-6)
    assert foreseen.spread == pytest.approx(np.sqrt(passes * (1 - passes)), abs=1e-6)


def test_a_quantile_is_in_doubt_where_errors_are_about_as_large() -> None:
    error = np.repeat([0.01, 1.0, 100.0], 100)
    foreseen = found(ErrorQuantile(0.5).foresee(Prospect(np.zeros(300), (), {}, error, "regression")))
    spread = foreseen.spread.reshape(3, 100).mean(axis=1)
    assert spread[1] > 3 * max(spread[0], spread[2])


def test_a_truth_near_zero_does_not_take_all_that_is_foreseen_of_a_share_of_it() -> None:
    predicted = np.concatenate([np.linspace(5, 50, 990), np.linspace(0.01, 1, 10)])
    measure = MeanAbsolutePercentageError()
    foreseen = found(measure.foresee(Prospect(predicted, (), {}, np.linspace(0.5, 1, 1000), "regression")))
    assert foreseen.spread[:990].sum() > foreseen.spread[990:].sum()


@pytest.mark.parametrize(("name", "keys"), [("calibration_error", {}), ("function", {"path": "math:fsum"})])
def test_sums_of_gaps_and_functions_of_ones_own_are_not_aimed_at(name: str, keys: dict[str, str]) -> None:
    assert not plugins.make("measure", name, keys).aimed_at("classification", TWO)
    assert AreaUnderCurve("fraud").aimed_at("classification", TWO)
    assert CalibrationError().foresee(scored(np.array([0.2, 0.7]), np.array([0.3, 0.6]))) is None


def test_a_large_frame_is_seen_beside_inputs_that_stand_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    score = rng.random(6000)
    prospect = scored(np.clip(score + 0.1 * rng.normal(size=6000), 0.01, 0.99), score)
    measure = AreaUnderCurve("fraud")
    whole = found(measure.foresee(prospect))
    monkeypatch.setattr(_expecting, "REFERENCE", 2000)
    monkeypatch.setattr(_expecting, "AT_ONCE", 3000)
    monkeypatch.setattr(_expecting, "FEWEST", 1000)
    some = found(measure.foresee(prospect))
    assert np.corrcoef(whole.spread, some.spread)[0, 1] > 0.999
    assert some.spread.mean() == pytest.approx(whole.spread.mean(), rel=0.1)


def test_inputs_without_scores_get_no_more_than_the_floor() -> None:
    score = np.array([0.2, 0.8, np.nan, 0.6])
    foreseen = found(Brier().foresee(scored(np.array([0.3, 0.7, 0.5, 0.5]), score)))
    assert foreseen.spread[2] == foreseen.mean[2] == 0
    assert (foreseen.spread[[0, 1, 3]] > 0).all()


def judged(size: int = 4000) -> tuple[Frame, np.ndarray]:
    rng = np.random.default_rng(2)
    hard = rng.random(size)
    scores = np.clip(np.round(4 * (1 - hard**2 * rng.random(size) * 1.5)) / 4, 0, 1)
    return Frame({"hard": hard.astype(np.float32)}), scores


def test_judgements_are_foreseen_from_those_of_the_first_wave() -> None:
    frame, scores = judged()
    draw = Adaptive().draw(frame, 400, np.random.default_rng(3))
    sample = Sample(draw, 1 - scores[draw.positions], "judged")
    foreseen = found(foresee_scores(PassRate(0.75), frame, sample))
    hard = frame.variable("hard")
    assert foreseen.spread[hard > 0.9].mean() > 2 * foreseen.spread[hard < 0.3].mean()
    assert foreseen.mean[hard > 0.9].mean() < foreseen.mean[hard < 0.3].mean()
    assert foresee_scores(PassRate(0.75), Frame({}, size=frame.size), sample) is None


def test_without_scores_failures_of_the_first_wave_say_where_a_cost_is_in_doubt() -> None:
    rng = np.random.default_rng(4)
    hard = rng.random(4000)
    said = np.where(rng.random(4000) < 0.3, "fraud", "ok")
    truth = np.where(rng.random(4000) < hard / 2, np.where(said == "ok", "fraud", "ok"), said)
    frame = Frame({"hard": hard.astype(np.float32)}, predictions=said)
    draw = Adaptive().draw(frame, 400, rng)
    at = draw.positions
    sample, seen = Sample(draw, (truth != said)[at].astype(float)), Seen(truth[at], said[at], {})
    foreseen = found(foresee(Recall("fraud"), frame, {}, TWO, seen, sample))
    ok = said == "ok"
    assert foreseen.spread[ok & (hard > 0.9)].mean() > 1.3 * foreseen.spread[ok & (hard < 0.1)].mean()
    assert foresee(Recall("fraud"), frame, {}, TWO, None, None) is None
    assert foresee(Brier(), frame, {}, TWO, seen, sample) is None


def test_simple_random_draws_gain_nothing_and_the_gain_of_others_is_told() -> None:
    rng = np.random.default_rng(5)
    odds = 2 * rng.normal(size=(3000, 4)) - 1
    chances = 1 / (1 + np.exp(-odds))
    truth = rng.random(chances.shape) < chances
    classes = tuple("abcd")
    frame = Frame({}, predictions=chances > 0.5, size=3000)
    measure, told = Recall("d"), dict(zip(classes, chances.T, strict=True))
    foreseen = found(foresee(measure, frame, {"d": told["d"]}, classes, None, problem="multilabel"))
    draw = Adaptive(waves=1).draw(Frame({}, size=3000, foreseen=foreseen), 300, rng)
    at = draw.positions
    rows = Labelled(np.ones(300, np.bool_), truth[at], (chances > 0.5)[at], chances[at], classes)
    estimate = measured(AdaptiveEstimator(), Sample(draw, np.zeros(300)), rows, measure)
    assert KIND in draw.constants
    assert estimate.method == "adaptive/ratio by parts"
    assert estimate.low <= measure.value(Labelled(np.ones(3000, np.bool_), truth, chances > 0.5, None, classes),
                                         np.ones(3000)) <= estimate.high  # fmt: skip
    gain = measured_gain(AdaptiveEstimator(), Sample(draw, np.zeros(300)), rows, measure)
    assert gain is not None
    assert gain < 0.95
    plain = Draw("srs", 3000, at, constants={"replacement": np.array(False)})
    same = measured_gain(SimpleRandomEstimator(), Sample(plain, np.zeros(300)), rows, measure)
    assert same == pytest.approx(1.0)


def test_of_a_mean_loss_a_sure_model_may_fail_anywhere() -> None:
    """One that gives the truth no chance costs 34.5, and nobody knows how seldom that is."""
    score = np.concatenate([np.full(990, 1e-9), np.full(10, 0.5)])
    frame = Frame({}, predictions=np.full(1000, "ok"), size=1000)
    spread = found(foresee(LogLoss(), frame, {"ok": 1 - score, "fraud": score}, TWO, None)).spread
    assert spread[0] > spread[-1]
    accuracy = found(foresee(AreaUnderCurve("fraud"), frame, {"fraud": np.maximum(score, 1e-4)}, TWO, None)).spread
    assert accuracy[0] < accuracy[-1]


def test_errors_are_foreseen_as_far_as_labels_confirm_them() -> None:
    rng = np.random.default_rng(7)
    size = np.exp(rng.normal(size=3000))
    spreads = []
    for errors in (size * rng.normal(size=3000), rng.normal(size=3000)):
        frame = Frame({"told": size.astype(np.float32)}, predictions=np.zeros(3000))
        draw = Adaptive().draw(frame, 300, np.random.default_rng(8))
        sample = Sample(draw, errors[draw.positions] ** 2, "regression")
        spreads.append(found(foresee_numbers(MeanAbsoluteError(), frame, sample)).spread)
    well, badly = (spread.std() / spread.mean() for spread in spreads)
    assert well > 2 * badly
