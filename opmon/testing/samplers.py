"""The suite that every sampler passes, and the estimator of its draws with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opmon.abc import Estimator, Sampler
from opmon.errors import InputError
from opmon.samplers._checks import ByVariable, Prepared
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Frame

BUDGETS = (1, 2, 7, 60)
REPETITIONS = 300


def check_sampler(
    sampler: Sampler,
    estimator: Estimator | None = None,
    *,
    biased: bool = False,
    populations: Sequence[Population] | None = None,
) -> None:
    """A sampler draws the budget, by the seed alone, and labels a small frame whole; with its estimator its mean is
    right: within 4.5 Monte Carlo standard errors, unless it says that it is ``biased``.

    ``populations``: frames with known outcomes, of 300 inputs or more; without them one of a classifier with the
    variables ``confidence`` and ``dsa`` and a hidden layer.
    """
    assert isinstance(sampler, Sampler), f"{type(sampler).__name__} does not subclass opmon.abc.Sampler"
    for population in populations or [classifier(size=400, activations=4)]:
        _draws_the_budget(sampler, population)
        _goes_by_the_seed(sampler, population)
        _labels_a_small_frame_whole(sampler, population, estimator)
        _refuses_what_is_no_budget(sampler, population)
        if estimator is not None:
            assert isinstance(estimator, Estimator), f"{type(estimator).__name__} does not subclass opmon.abc.Estimator"
            _estimates(sampler, estimator, population, biased)


def drawn(
    sampler: Sampler, population: Population, budget: int, rng: np.random.Generator, first: Prepared | None = None
) -> Draw:
    """The draw after all its waves; ``first`` draws the first of them, where that was prepared."""
    draw = sampler.draw(population.frame, budget, rng) if first is None else first(rng)
    for _ in range(budget + 1):
        longer = sampler.next_batch(population.frame, budget, population.answer(draw), rng)
        if len(longer) == len(draw):
            return draw
        before = longer.positions[: len(draw)]
        assert np.array_equal(before, draw.positions), "next_batch() goes on from the draws before; it changed them"
        draw = longer
    raise AssertionError(f"next_batch() does not come to an end with a budget of {budget}")


def _draws_the_budget(sampler: Sampler, population: Population) -> None:
    before = {name: values.copy() for name, values in population.frame.variables.items()}
    for budget in BUDGETS:
        draw = drawn(sampler, population, budget, np.random.default_rng(budget))
        whole = sampler.at_once().draw(population.frame, budget, np.random.default_rng(budget))
        assert len(whole) == len(draw), f"at_once() draws all of the {len(draw)} at once; it drew {len(whole)}"
        assert len(draw) == budget, f"{len(draw)} draws of a budget of {budget}"
        assert draw.frame_size == population.frame.size, "the draw says another size of the frame"
        assert draw.design, "the draw names no design"
    for name, values in before.items():
        assert np.array_equal(values, population.frame.variables[name]), f"the variable {name!r} was changed"


def _goes_by_the_seed(sampler: Sampler, population: Population) -> None:
    first, again, other = (
        drawn(sampler, population, 40, np.random.default_rng(seed)).positions.tolist() for seed in (3, 3, 4)
    )
    assert first == again, "the same seed gives another draw"
    assert first != other, "another seed gives the same draw"


def _labels_a_small_frame_whole(sampler: Sampler, population: Population, estimator: Estimator | None) -> None:
    size = population.frame.size
    for budget in (size, size + 100):
        draw = drawn(sampler, population, budget, np.random.default_rng(1))
        assert sorted(draw.positions.tolist()) == list(range(size)), "a frame within the budget is labelled whole, once"
        if estimator is not None and draw.design == _design(sampler, population):
            census = estimator.estimate(population.answer(draw))
            assert math.isclose(census.value, population.truth, abs_tol=1e-9), "a census is exact"


def _design(sampler: Sampler, population: Population) -> str:
    return sampler.draw(population.frame, 7, np.random.default_rng(0)).design


def _refuses_what_is_no_budget(sampler: Sampler, population: Population) -> None:
    bad: list[Any] = [0, -5, 2.5, True, "10"]
    for budget in bad:
        error = _refusal(sampler, population.frame, budget)
        assert error is not None, f"a budget of {budget!r} is taken for one"
        assert "budget" in error, f"the error on a budget of {budget!r} does not name it: {error}"
    assert _refusal(sampler, Frame({}, size=0), 5) is not None, "an empty frame is drawn from"


def _refusal(sampler: Sampler, frame: Frame, budget: Any) -> str | None:
    """The error of the sampler for a budget, which may be anything; None where it draws."""
    try:
        sampler.draw(frame, budget, np.random.default_rng(1))
    except InputError as exc:
        return str(exc)
    return None


def _prepared(sampler: Sampler, population: Population, budget: int) -> Prepared | None:
    """What draws as the sampler does, with all that does not depend on chance done once; None where it has none."""
    if isinstance(sampler, ByVariable) and type(sampler).draw is ByVariable.draw:
        return sampler.prepare(population.frame, budget)
    return None


def _estimates(sampler: Sampler, estimator: Estimator, population: Population, biased: bool) -> None:
    rng = np.random.default_rng(11)
    values, first = [], _prepared(sampler, population, 40)
    for _ in range(REPETITIONS):
        sample = population.answer(drawn(sampler, population, 40, rng, first))
        estimate = estimator.estimate(sample)
        assert estimate.low <= estimate.value <= estimate.high, "the estimate lies outside its interval"
        assert estimate.n == 40, f"the estimate says {estimate.n} draws of 40"
        values.append(estimate.value)
    if not biased:
        error = float(np.std(values, ddof=1)) / math.sqrt(REPETITIONS)
        away = abs(float(np.mean(values)) - population.truth)
        assert away <= 4.5 * error, f"the mean of {REPETITIONS} estimates is {away:.4f} off; s.e. {error:.4f}"
    part = population.answer(drawn(sampler, population, 60, rng), response=0.5, rng=rng)
    estimate = estimator.estimate(part)
    assert math.isclose(estimate.response, part.response), "the estimate says another response than the sample has"
