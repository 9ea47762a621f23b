"""The adaptive sampler aims at a measure: by what its linearised value is likely to be for every input."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.abc import Measure
from opmon.measures.accuracy import Accuracy
from opmon.measures.auc import AreaUnderCurve
from opmon.measures.balanced_accuracy import BalancedAccuracy
from opmon.measures.cost import Cost
from opmon.measures.f1 import F1Score
from opmon.measures.mean_absolute_error import MeanAbsoluteError
from opmon.measures.recall import Recall
from opmon.samplers import Adaptive, _aimed
from opmon.samplers.foresight import Seen, foresee
from opmon.types import Draw, Frame, Sample
from opmon.types.draw import KIND
from opmon.types.frame import Reserved
from opmon.types.prospect import Prospect

CLASSES = ("ok", "fraud")


def prospect() -> Prospect:
    chance = np.array([0.9, 0.6, 0.4, 0.1, 0.0])
    return Prospect(np.array([1, 1, 0, 0, 0]), CLASSES, {"fraud": chance, "ok": 1 - chance})


def test_recall_is_foreseen_by_hand() -> None:
    foreseen = Recall("fraud").foresee(prospect())
    assert foreseen is not None
    recall, mass = 1.5 / 2.0, 2.0 / 5
    value = np.array([1 - recall, 1 - recall, -recall, -recall, -recall]) / mass
    p = np.array([0.9, 0.6, 0.4, 0.1, 0.0])
    assert foreseen.mean == pytest.approx(p * value, abs=1e-6)
    assert foreseen.spread == pytest.approx(np.sqrt(p * (1 - p)) * np.abs(value), abs=1e-6)
    assert (foreseen.kind[:2] == foreseen.kind[0]).all()
    assert (foreseen.kind[2:] != foreseen.kind[0]).all()


def test_a_cost_matrix_is_foreseen_by_hand() -> None:
    cost = Cost({"fraud": {"ok": 500.0}, "ok": {"fraud": 20.0}})
    foreseen = cost.foresee(prospect())
    assert foreseen is not None
    p = np.array([0.9, 0.6, 0.4, 0.1, 0.0])
    expected = np.array([0.1 * 20, 0.4 * 20, 0.4 * 500, 0.1 * 500, 0])
    assert foreseen.mean == pytest.approx(expected - expected.mean(), rel=1e-5)
    assert foreseen.spread == pytest.approx(np.sqrt(p * (1 - p)) * np.array([20, 20, 500, 500, 500]), rel=1e-5)


def test_errors_are_foreseen_in_proportion_to_what_is_expected() -> None:
    error = np.linspace(1, 10, 500)
    foreseen = MeanAbsoluteError().foresee(Prospect(np.zeros(500), error=error, problem="regression"))
    assert foreseen is not None
    assert foreseen.spread[-1] / foreseen.spread[0] == pytest.approx(10, rel=0.1)
    assert (np.diff(foreseen.mean) >= 0).all()


@pytest.mark.parametrize("measure", [AreaUnderCurve("fraud"), MeanAbsoluteError()])
def test_nothing_is_foreseen_of_what_scores_or_unknown_errors_decide(measure: Measure) -> None:
    assert measure.foresee(prospect()) is None


def test_recall_wants_the_chance_of_its_class_alone() -> None:
    assert Recall("fraud").chances(CLASSES) == ("fraud",)
    assert Accuracy().chances(CLASSES) == CLASSES
    assert Recall(average="macro").chances([str(number) for number in range(100)]) == ()


def population(size: int = 20_000) -> tuple[Frame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    chance = 1 / (1 + np.exp(-(rng.normal(size=size) * 3 - 7)))
    said = np.where(chance > 0.3, "fraud", "ok")
    truth = np.where(rng.random(size) < chance, "fraud", "ok")
    return Frame({}, predictions=said, size=size), chance, truth


def aimed_at(measure: Measure, frame: Frame, chance: np.ndarray, seen: Seen | None = None) -> Frame:
    foreseen = foresee(measure, frame, {"fraud": chance}, CLASSES, seen)
    assert foreseen is not None
    return Frame({}, predictions=frame.predictions, size=frame.size, foreseen=foreseen)


def test_draws_that_aim_are_of_one_kind_in_a_stratum_and_no_weight_explodes() -> None:
    frame, chance, truth = population()
    sampler, rng = Adaptive(), np.random.default_rng(1)
    drawn = sampler.draw(aimed_at(Recall("fraud"), frame, chance), 300, rng)
    assert frame.predictions is not None
    seen = Seen(truth[drawn.positions], frame.predictions[drawn.positions], {"fraud": chance[drawn.positions]})
    sample = Sample(drawn, (truth != frame.predictions)[drawn.positions].astype(float), "classification")
    drawn = sampler.next_batch(aimed_at(Recall("fraud"), frame, chance, seen), 300, sample, rng)
    assert len(drawn) == 300
    assert len(np.unique(drawn.positions)) == 300
    stratum, said = drawn.columns["stratum"], frame.predictions[drawn.positions]
    for one in np.unique(stratum):
        assert len(np.unique(said[stratum == one])) == 1
    for wave in (0, 1):
        of = drawn.constants["stratum_wave"] == wave
        counts = np.bincount(stratum, minlength=len(of))[of]
        left = frame.size - (0 if wave == 0 else (drawn.columns["wave"] == 0).sum())
        weight = drawn.constants["stratum_size"][of] / left * counts.sum() / counts
        assert weight.max() < 2.0  # the floor of 0.6, and what rounding does to strata of a few draws
        assert drawn.constants["stratum_size"][of].sum() == left
    assert (truth[drawn.positions] == "fraud").sum() > 2 * 300 * (truth == "fraud").mean()


def test_a_kind_keeps_its_number_whatever_the_labels_say() -> None:
    frame, chance, truth = population()
    assert frame.predictions is not None
    some = np.arange(2000)
    seen = Seen(truth[some], frame.predictions[some], {"fraud": chance[some]})
    kinds = [aimed_at(Recall("fraud"), frame, chance, known).foreseen for known in (None, seen)]
    assert kinds[0] is not None
    assert kinds[1] is not None
    assert (kinds[0].kind == kinds[1].kind).all()


def test_chances_are_tempered_before_labels_and_learned_from_them() -> None:
    """Of a model that is twice too sure; with labels the chances foreseen are nearly right."""
    rng = np.random.default_rng(5)
    odds = rng.normal(size=30_000) * 2 - 2
    truth = np.where(rng.random(30_000) < 1 / (1 + np.exp(-odds)), "fraud", "ok")
    sure = 1 / (1 + np.exp(-2 * odds))
    frame = Frame({}, predictions=np.full(30_000, "ok"), size=30_000)
    some = rng.permutation(30_000)[:1500]
    assert frame.predictions is not None
    seen = Seen(truth[some], frame.predictions[some], {"fraud": sure[some]})
    cost, both = Cost({"fraud": {"ok": 1.0}, "ok": {"fraud": 1.0}}), {"fraud": sure, "ok": 1 - sure}
    before, after = (foresee(cost, frame, both, CLASSES, known) for known in (None, seen))
    assert before is not None
    assert after is not None
    right = np.sqrt(1 / (1 + np.exp(-odds)) / (1 + np.exp(odds)))
    assert np.corrcoef(after.spread, right)[0, 1] > 0.99
    assert np.corrcoef(after.spread, right)[0, 1] > np.corrcoef(before.spread, right)[0, 1]


def test_bins_keep_the_order_of_means_and_tell_kinds_apart() -> None:
    frame, chance, _ = population(5000)
    foreseen = aimed_at(Recall("fraud"), frame, chance).foreseen
    assert foreseen is not None
    bins, none = _aimed.binned(foreseen)
    assert bins.max() < none
    for kind in (0, 1):
        of = foreseen.kind == kind
        order = np.argsort(foreseen.mean[of], kind="stable")
        assert (np.diff(bins[of][order].astype(int)) >= 0).all()
    assert set(bins[foreseen.kind == 0].tolist()).isdisjoint(bins[foreseen.kind == 1].tolist())


def test_a_wave_that_can_no_longer_aim_goes_on_as_ever() -> None:
    frame, chance, truth = population(2000)
    sampler, rng = Adaptive(), np.random.default_rng(1)
    first = sampler.draw(aimed_at(Recall("fraud"), frame, chance), 200, rng)
    assert KIND in first.constants
    plain = Frame({"confidence": chance.astype(np.float32)}, predictions=frame.predictions)
    sample = Sample(first, (truth != plain.predictions)[first.positions].astype(float), "classification")
    whole: Draw = sampler.next_batch(plain, 200, sample, rng)
    assert len(whole) == 200
    assert KIND not in whole.constants


def of_many(classes: int, measure: Measure, promised: int = 0) -> Frame:
    """5,000 inputs of so many predicted classes, one kind each; draws are promised to a slice of 2 % of them."""
    rng = np.random.default_rng(classes)
    names = tuple(str(number) for number in range(classes))
    chance = rng.dirichlet(np.full(classes, 0.3), 5000)
    chances = {name: chance[:, at] for at, name in enumerate(names)}
    said = np.array(names)[chance.argmax(axis=1)]
    foreseen = foresee(measure, Frame({}, predictions=said, size=5000), chances, names, None)
    assert foreseen is not None
    assert len(np.unique(foreseen.kind)) == classes
    reserved = Reserved((rng.random(5000) < 0.02).astype(np.int16), (0, promised)) if promised else None
    return Frame({}, predictions=said, size=5000, foreseen=foreseen, reserved=reserved)


def all_in_reach(draw: Draw, budget: int) -> None:
    """Each wave has strata of all inputs that were not drawn before, and a draw of each."""
    constants, stratum = draw.constants, draw.columns["stratum"]
    assert len(np.unique(draw.positions)) == budget
    assert np.bincount(stratum, minlength=len(constants["stratum_size"])).min() >= 1
    for wave in np.unique(constants["stratum_wave"]):
        left = draw.frame_size - (draw.columns["wave"] < wave).sum()
        assert constants["stratum_size"][constants["stratum_wave"] == wave].sum() == left


@pytest.mark.parametrize("classes", [4, 5, 6, 10])
@pytest.mark.parametrize("measure", [F1Score(average="macro"), BalancedAccuracy()])
@pytest.mark.parametrize(
    ("aim", "budget", "promised"),
    [(0.5, 200, 10), (0.5, 100, 10), (0.5, 5, 0), (0.5, 12, 0), (1.0, 20, 0), (1.0, 40, 0), (1.0, 60, 0)],
)
def test_every_input_is_in_reach_of_fewer_draws_than_kinds(
    classes: int, measure: Measure, aim: float, budget: int, promised: int
) -> None:
    sampler, rng = Adaptive(aim), np.random.default_rng(0)
    frame = of_many(classes, measure, promised)
    drawn = sampler.draw(frame, budget, rng)
    all_in_reach(drawn, len(drawn))
    drawn = sampler.next_batch(frame, budget, Sample(drawn, np.zeros(len(drawn)), "classification"), rng)
    all_in_reach(drawn, budget)


@pytest.mark.parametrize("budget", range(1, 40))
def test_there_are_never_more_strata_than_draws(budget: int) -> None:
    frame = of_many(12, F1Score(average="macro"))
    assert frame.foreseen is not None
    bins, none = _aimed.binned(frame.foreseen)
    mass = _aimed.masses(frame.foreseen, bins, none, 0.1)
    mass[: _aimed.PER_KIND] *= 50
    cut, kinds = _aimed.strata(np.bincount(bins, minlength=none), mass, budget)
    assert cut.counts.min() >= 1
    assert cut.counts.sum() == budget
    assert cut.sizes.sum() == frame.size
    assert (kinds is None) == (budget < 12)
