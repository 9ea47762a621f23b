"""Corrected estimates: identities, values worked by hand, and when there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opmon import plugins
from opmon.annotators import Correction, Opinion, corrected, denoised
from opmon.errors import InputError
from opmon.estimators import SimpleRandomEstimator
from opmon.types import Draw, Sample
from tests.annotators.teams import Overlap, World
from tests.builtin import built_in


def simple(outcomes: list[float], size: int = 100_000) -> Sample:
    draw = Draw("srs", size, np.arange(len(outcomes)), constants={"replacement": np.array(False)})
    return Sample(draw, np.array(outcomes), "classification")


def of(opinions: list[Opinion], wrong: list[float], others: list[Opinion], classes: int) -> Correction:
    sample = simple(wrong)
    return corrected(SimpleRandomEstimator(), sample, dict(enumerate(opinions)), others, classes=classes)


def test_with_known_errors_it_is_rogan_and_gladen() -> None:
    """θ = (π − e)/(1 − e − q): two classes, e = q = 0.1 by very many gold tasks, π = 0.2 of 400; θ = 0.125."""
    gold = [Opinion({"ann": "a" if k % 10 else "b"}, "a", "a", 1) for k in range(20_000)]
    gold += [Opinion({"ann": "b" if k % 10 else "a"}, "a", "b", 1) for k in range(20_000)]
    wrong = [1.0] * 80 + [0.0] * 320
    found = of([Opinion({"ann": "b" if z else "a"}, "a") for z in wrong], wrong, gold, classes=2).estimate
    assert found is not None
    assert found.value == pytest.approx(1 - 0.125, abs=0.002)
    # the plain interval, stretched by 1/(1 − e − q)
    plain = SimpleRandomEstimator().estimate(simple(wrong))
    assert found.high - found.low == pytest.approx((plain.high - plain.low) / 0.8, rel=0.05)


@pytest.mark.parametrize("classes", [2, 10])
def test_where_all_agree_it_is_the_plain_estimate(classes: int) -> None:
    wrong = [1.0] * 20 + [0.0] * 180
    opinions = [Opinion({"ann": str(int(z)), "ben": str(int(z))}, "0") for z in wrong]
    found, plain = of(opinions, wrong, [], classes).estimate, SimpleRandomEstimator().estimate(simple(wrong))
    assert found is not None
    assert found.value == pytest.approx(plain.value, abs=0.002)
    assert found.high - found.low == pytest.approx(plain.high - plain.low, rel=0.05)


def test_the_order_and_the_names_of_annotators_and_classes_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    world = World.of(error=0.1, size=500)
    sample, opinions = world.labelled(world.draw("srs", 150, rng), 2, rng)
    other = {
        at: Opinion(
            {f"z{name}": f"c{9 - int(said)}" for name, said in reversed(each.answers.items())},
            f"c{9 - int(each.prediction or 0)}",
        )
        for at, each in opinions.items()
    }
    one, two = (corrected(SimpleRandomEstimator(), sample, each, classes=10).estimate for each in (opinions, other))
    assert one is not None
    assert two is not None
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high), abs=2e-4)


@pytest.mark.parametrize("overlap", [2, "failures"])
def test_a_frame_labelled_whole_is_as_sure_as_its_labels(overlap: Overlap) -> None:
    rng = np.random.default_rng(6)
    world = World.of(error=0.05, size=400)
    sample, opinions = world.labelled(world.draw("srs", 400, rng), overlap, rng)
    found = corrected(SimpleRandomEstimator(), sample, opinions, classes=10).estimate
    assert found is not None
    assert found.low <= world.population.truth <= found.high
    assert found.high - found.low < 0.06


@pytest.mark.parametrize("sampler", [name for name in built_in("sampler") if name != "ces"])
@pytest.mark.parametrize("answered", [1, 2, 60])
def test_draws_of_every_design_can_be_corrected(sampler: str, answered: int) -> None:
    """However few answers there are: numbers, in order, and inside of what an accuracy can be."""
    rng = np.random.default_rng(8)
    world = World.of(error=0.1, size=600)
    sample, opinions = world.labelled(world.draw(sampler, 60, rng), 2, rng)
    heard = set(list(opinions)[:answered])
    outcomes = np.where([int(at) in heard for at in sample.draw.positions], sample.outcomes, np.nan)
    estimator = plugins.make("estimator", sample.draw.design)
    found = corrected(estimator, replace(sample, outcomes=outcomes), opinions, classes=10).estimate
    assert found is not None
    assert -0.2 < found.low <= found.value <= found.high < 1.2
    assert found.standard_error is not None
    assert np.isfinite(found.standard_error)


def test_single_answers_cannot_be_corrected() -> None:
    wrong = [1.0] * 10 + [0.0] * 90
    found = of([Opinion({"ann": str(int(z))}, "0") for z in wrong], wrong, [], classes=10)
    assert found.estimate is None
    assert found.why == "too few to correct: 0 answers are checked by another one or by a known truth, 50 are needed"


def test_truth_that_arrived_checks_the_answers() -> None:
    """Annotators say "1" to a tenth of what is truly "0"; the truths of all those inputs came later."""
    opinions = [Opinion({"ann": "0" if k % 10 else "1"}, "0", "0") for k in range(200)]
    opinions += [Opinion({"ann": "1"}, "0", "1")] * 20
    wrong = [0.0] * 200 + [1.0] * 20
    found = of(opinions, wrong, [], classes=5)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(200 / 220, abs=0.002)
    assert found.model.errors()[0].error == pytest.approx(20 / 220, abs=0.02)


def test_regressions_have_no_error_rate() -> None:
    draw = Draw("srs", 100, np.arange(3), constants={"replacement": np.array(False)})
    sample = Sample(draw, np.array([0.1, 0.2, 0.3]), "regression")
    with pytest.raises(InputError, match="denoised"):
        corrected(SimpleRandomEstimator(), sample, {}, classes=2)


def test_the_noise_of_annotators_is_taken_from_the_squared_error() -> None:
    rng = np.random.default_rng(7)
    draw = Draw("srs", 100_000, np.arange(400), constants={"replacement": np.array(False)})
    held, values = 0, []
    for _ in range(100):
        truth, predicted = rng.normal(size=400), np.zeros(400)
        said = truth[:, None] + 0.7 * rng.normal(size=(400, 2))
        sample = Sample(draw, (said[:, 0] - predicted) ** 2, "regression")
        found = denoised(SimpleRandomEstimator(), sample, dict(enumerate(said.tolist()))).estimate
        assert found is not None
        values.append(found.value)
        held += found.low <= 1.0 <= found.high
    assert np.mean(values) == pytest.approx(1.0, abs=0.03)
    assert held >= 88


def test_truth_that_arrived_has_no_noise() -> None:
    draw = Draw("srs", 100_000, np.arange(80), constants={"replacement": np.array(False)})
    sample = Sample(draw, np.full(80, 2.0), "regression")
    said = {at: [0.0, 1.0] if at < 40 else [] for at in range(80)}
    found = denoised(SimpleRandomEstimator(), sample, said)
    assert found.noise == pytest.approx(0.5)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(2.0 - 0.5 / 2)


def test_the_noise_of_few_second_answers_is_not_taken() -> None:
    draw = Draw("srs", 100, np.arange(30), constants={"replacement": np.array(False)})
    sample = Sample(draw, np.ones(30) * 2, "regression")
    few = denoised(SimpleRandomEstimator(), sample, {0: [1.0, 2.0], 1: [1.0]})
    assert few.estimate is None
    assert few.noise == pytest.approx(0.5)
    assert few.why == "too few to correct: 1 of the inputs have two answers, 20 must"
    assert denoised(SimpleRandomEstimator(), sample, {0: [1.0]}).why == ""
