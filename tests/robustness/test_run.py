from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.errors import InputError, ModelError
from opmon.robustness._anchors import Anchors
from opmon.robustness.codecs import Unchanged
from opmon.robustness.evaluation import Evaluation, judged
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.perturbations.base import Custom
from opmon.robustness.run import Subject, measure
from opmon.robustness.running import Budget, Checkpoint, Running, anchor_tests
from opmon.robustness.space import Space

SPACE = Space(("a", "b", "c"))


class Add(Perturbation):
    """Adds its severity to one column, and counts how often it is asked."""

    def __init__(self, column: int) -> None:
        self.column, self.calls = column, 0

    def apply(self, inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
        self.calls += 1
        changed = inputs.copy()
        changed[:, self.column] += severity + 0.1 * rng.random(len(inputs))
        return changed


def falls_above(limit: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda inputs: (inputs.sum(axis=1) > limit).astype(int)


def subject(plan: Plan, **changes: Any) -> Subject:
    inputs = np.random.default_rng(0).normal(size=(400, 3))
    evaluation = Evaluation(inputs, np.zeros(400, int), **changes)
    return Subject.of(falls_above(4.0), evaluation, [Add(0), Add(1), Add(2)], Unchanged(), plan)


def test_unperturbed_share_is_the_accuracy() -> None:
    plan = Plan(half_width=None)
    made = subject(plan)
    found = measure(made.look, SPACE.of([()]), 400, plan)
    assert found.share[0] == (made.evaluation.inputs.sum(axis=1) <= 4).mean()
    assert (found.low[0], found.high[0], found.error[0]) == (found.share[0], found.share[0], 0)


def test_prefixes_are_shared() -> None:
    plan = Plan(half_width=None, block=400)
    made = subject(plan)
    measure(made.look, SPACE.tests(0, 2), 400, plan)
    asked = sum(p.calls for p in made.perturbations)  # type: ignore[attr-defined]
    assert asked == 15 + 75  # every test but the first adds one step to another test


def test_all_tests_see_the_same_noise() -> None:
    plan = Plan(half_width=None)
    made = subject(plan)
    alone = made.perturbed(((0, 2),), 50)[:, 0]
    with_other = made.perturbed(((1, 3), (0, 2)), 50)[:, 0]
    assert np.array_equal(alone, with_other)


def test_blocks_and_batches_do_not_change_what_is_counted() -> None:
    deterministic = [
        measure(made.look, SPACE.tests(0, 1), 400, plan).right
        for plan in (Plan(half_width=None, batch=10), Plan(half_width=None, batch=10_000))
        for made in (subject(plan),)
    ]
    assert np.array_equal(*deterministic)


@pytest.mark.parametrize("budget", [Budget(16), Budget(None, 60_000)], ids=["tests", "inferences"])
def test_resumed_run_gives_the_same(synthetic: Callable[..., Any], budget: Budget) -> None:
    world = synthetic(SPACE)
    plan = Plan(half_width=0.04)
    whole, _, _ = Running(world.look, SPACE, world.inputs, None, plan, budget).run()
    kept: list[Checkpoint] = []
    Running(world.look, SPACE, world.inputs, None, plan, budget, save=kept.append).run()
    for checkpoint in kept[:: max(1, len(kept) // 6)]:
        again, _, _ = Running(world.look, SPACE, world.inputs, None, plan, budget).run(checkpoint)
        assert again.tests.chains() == whole.tests.chains()
        assert np.array_equal(again.right, whole.right)
        assert np.array_equal(again.share, whole.share)


def test_resumed_run_does_not_repeat(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE)
    kept: list[Checkpoint] = []
    plan = Plan(half_width=0.04)
    whole, _, _ = Running(world.look, SPACE, world.inputs, None, plan, Budget(8), save=kept.append).run()
    before, world.looked = world.looked, 0
    Running(world.look, SPACE, world.inputs, None, plan, Budget(8)).run(kept[-1])
    assert before == whole.inferences
    assert world.looked == 0


def test_budget_of_inferences_is_kept_and_spent(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE, 2000)
    measured, _, _ = Running(world.look, SPACE, 2000, None, Plan(), Budget(None, 90_000)).run()
    assert 0.85 * 90_000 < measured.inferences <= 92_000


def test_early_stopping_saves_and_its_bounds_hold(synthetic: Callable[..., Any]) -> None:
    saved, held = [], []
    for seed in range(8):
        world = synthetic(SPACE, 2000, seed)
        anchored = measure(world.look, anchor_tests(SPACE), 2000, Plan(half_width=None))
        anchors = Anchors.of(anchored.right, anchored.margin, None, 2000)
        tests = SPACE.tests(2, 2)
        found = measure(world.look, tests, 2000, Plan(half_width=0.03), anchors=anchors)
        truth = world.share(tests)
        held += (np.abs(found.share - truth) <= 0.03).tolist()
        held += ((found.low <= truth + 1e-12) & (truth <= found.high + 1e-12)).tolist()
        saved.append(1 - found.inferences / (2000 * len(tests)))
    assert np.mean(held) >= 0.95
    assert np.mean(saved) > 0.4


def test_bounds_without_anchors_hold_at_all_times(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE, 1000, 4)
    tests = SPACE.tests(1, 2)
    states: list[Measured] = []
    measure(world.look, tests, 1000, Plan(half_width=None, block=50), save=states.append)
    truth = world.share(tests)
    ever_left = np.zeros(len(tests), bool)
    for state in states:
        ever_left |= (truth < state.low - 1e-12) | (truth > state.high + 1e-12)
    assert ever_left.mean() <= 0.05


def test_progress_ends_where_everything_is_done(synthetic: Callable[..., Any]) -> None:
    world, heard = synthetic(SPACE), []
    Running(world.look, SPACE, world.inputs, None, Plan(), Budget(8), progress=lambda *said: heard.append(said)).run()
    assert all(done <= total for _, done, total in heard)
    assert heard[-1][1] == heard[-1][2]


def test_unlabelled_inputs_are_right_while_the_answer_stays() -> None:
    plan = Plan(half_width=None)
    inputs = np.random.default_rng(0).normal(size=(100, 3))
    made = Subject.of(falls_above(0.0), Evaluation(inputs), [Add(0)], Unchanged(), plan)
    found = measure(made.look, Space(("a",)).tests(), 100, plan)
    assert found.share[0] == 1
    assert found.share[5] < 0.9


def test_regression_is_right_within_the_tolerance() -> None:
    inputs = np.random.default_rng(0).normal(size=(100, 3))
    evaluation = Evaluation(inputs, inputs.sum(axis=1), problem="regression", tolerance=2.5)
    plan = Plan(half_width=None)
    made = Subject.of(lambda x: x.sum(axis=1), evaluation, [Add(0)], Unchanged(), plan)
    share = measure(made.look, Space(("a",)).tests(), 100, plan).share
    assert share.tolist() == [1, 1, 1, 0, 0, 0]


def test_weights_count(synthetic: Callable[..., Any]) -> None:
    plan = Plan(half_width=None)
    inputs = np.repeat([[0.0, 0, 0], [9.0, 0, 0]], 50, axis=0)
    weights = np.repeat([3.0, 1.0], 50)
    made = Subject.of(falls_above(4), Evaluation(inputs, np.zeros(100, int), weights), [Add(0)], Unchanged(), plan)
    found = measure(made.look, Space(("a",)).of([()]), 100, plan, weights=made.evaluation.weights)
    assert found.share[0] == pytest.approx(0.75)


def added(inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
    return inputs + severity * np.array([1.0, 0, 0])


def added_in_place(inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
    inputs[:, 0] += severity
    return inputs


def test_a_function_that_changes_its_array_in_place_changes_no_other_test() -> None:
    plan, found = Plan(half_width=None), []
    for function in (added, added_in_place):
        made = replace(subject(plan), perturbations=(Custom(function), Add(1), Custom(function)))
        before = made.evaluation.inputs.copy()
        found.append(measure(made.look, SPACE.tests(0, 2), 400, plan).right)
        assert np.array_equal(made.evaluation.inputs, before)
    assert np.array_equal(*found)


def test_perturbation_that_changes_the_shape_is_named() -> None:
    class Cut(Add):
        def apply(self, inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
            return inputs[:-1]

    plan = Plan()
    made = replace(subject(plan), perturbations=(Cut(0), Add(1), Add(2)))
    with pytest.raises(InputError, match="perturbation number 1"):
        measure(made.look, SPACE.tests(1, 1), 400, plan)


def test_model_that_loses_answers_is_named() -> None:
    plan = Plan()
    made = replace(subject(plan), model=lambda x: np.zeros(len(x) - 1))
    with pytest.raises(ModelError, match="one for each"):
        measure(made.look, SPACE.of([()]), 400, plan)


def test_truth_that_the_model_does_not_know() -> None:
    plan = Plan()
    made = replace(subject(plan), model=lambda x: np.zeros((len(x), 2)), truth=np.full(400, 7))
    with pytest.raises(ModelError, match="names class 7"):
        measure(made.look, SPACE.of([()]), 400, plan)


@pytest.mark.parametrize(
    "changes",
    [{"half_width": 0.0}, {"half_width": 0.7}, {"level": 1.0}, {"block": 0}, {"batch": 0}],
    ids=str,
)
def test_broken_plan(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Plan(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"truth": np.zeros(3)},
        {"weights": np.zeros(400)},
        {"weights": np.full(400, np.nan)},
        {"problem": "regression"},
        {"problem": "regression", "tolerance": -1.0},
    ],
    ids=range(5),
)
def test_broken_evaluation(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Evaluation(np.zeros((400, 3)), **changes)


def test_an_answer_that_is_no_number_is_not_right() -> None:
    evaluation = Evaluation(np.zeros((3, 2)), np.zeros(3, int))
    found = judged(np.array([[np.nan, 0.0], [1.0, 0.0], [np.inf, np.inf]]), np.zeros(3, int), evaluation)
    assert found.right.tolist() == [False, True, False]
    assert found.margin is not None
    assert np.isfinite(found.margin).all()


def test_perturbation_that_fails_is_named() -> None:
    class Broken(Add):
        def apply(self, inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
            raise KeyError("lost")

    plan = Plan(half_width=None)
    made = replace(subject(plan), perturbations=(Add(0), Broken(1), Add(2)))
    with pytest.raises(InputError, match=r"number 2 fails at severity 1: KeyError"):
        measure(made.look, SPACE.tests(1, 1), 400, plan)


def test_a_checkpoint_of_other_blocks_is_not_gone_on_from(synthetic: Callable[..., Any]) -> None:
    world, plan = synthetic(SPACE), Plan(half_width=0.04)
    states: list[Measured] = []
    whole = measure(world.look, SPACE.tests(1, 2), world.inputs, plan, save=states.append)
    turned = replace(states[2], right=states[2].right[:, ::-1].copy())
    again = measure(world.look, SPACE.tests(1, 2), world.inputs, plan, resume=turned)
    assert np.array_equal(again.right, whole.right)
