from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.run import measure
from opmon.robustness.running import Budget, Running
from opmon.robustness.space import Space
from opmon.robustness.surrogates.forest import forest
from opmon.robustness.surrogates.independence import independence, independence_test
from opmon.robustness.surrogates.inputs import added_margins, all_pairs
from opmon.robustness.surrogates.kirkwood import kirkwood
from opmon.robustness.surrogates.known import Known

SPACE = Space(("a", "b", "c"))
ALL = Plan(half_width=None)


def known_of(world: Any, space: Space = SPACE) -> Known:
    return Known.of(measure(world.look, space.tests(0, 2), world.inputs, ALL), space.levels)


def with_shares(share: np.ndarray) -> Known:
    """Measured tests of order ≤ 2 whose shares are given."""
    tests = SPACE.tests(0, 2)
    n = len(tests)
    right = (np.arange(1000)[None] < share[:, None] * 1000).astype(np.int8)
    seen, zero = np.full(n, 1000), np.zeros(n)
    measured = Measured(tests, right, None, seen, share, zero, share, share, np.ones(n, bool))
    return Known.of(measured, SPACE.levels)


def test_kirkwood_is_exact_where_there_is_nothing_beyond_pairs() -> None:
    tests, s = SPACE.tests(), SPACE.tests().severities.astype(float)
    share = 0.9 * np.exp(-0.05 * s.sum(axis=1) - 0.01 * (s[:, 0] * s[:, 1] + s[:, 1] * s[:, 2]))
    found = kirkwood(with_shares(share[tests.order <= 2]), tests)
    assert found == pytest.approx(share, abs=1e-9)


def test_independence_is_exact_for_a_product() -> None:
    tests = SPACE.tests()
    share = 0.95 * np.exp(-0.06 * tests.severity_sum)
    assert independence(with_shares(share[tests.order <= 2]), tests) == pytest.approx(share, abs=1e-9)


def test_added_margins_are_exact_for_margins_of_pairs(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE)
    beyond = SPACE.tests(3)
    assert added_margins(known_of(world), beyond) == pytest.approx(world.share(beyond), abs=1e-9)


def test_all_pairs_is_an_upper_bound_where_damage_grows(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE)
    beyond = SPACE.tests(3)
    assert (all_pairs(known_of(world), beyond) >= world.share(beyond) - 1e-9).all()


def test_forest_on_weighted_rows_is_the_forest_on_repeated_rows() -> None:
    from sklearn.ensemble import RandomForestClassifier

    tests, beyond = SPACE.tests(0, 2), SPACE.tests(3)
    share = np.random.default_rng(0).binomial(400, np.exp(-0.12 * tests.severity_sum)) / 400
    right = (np.arange(400)[None] < (share * 400)[:, None]).astype(int)
    grown = RandomForestClassifier(100, bootstrap=False, max_features=None, criterion="log_loss", random_state=0)
    grown.fit(np.repeat(tests.severities, 400, axis=0), right.ravel())
    repeated = grown.predict_proba(beyond.severities)[:, 1]
    assert np.abs(forest(tests, share, beyond) - repeated).max() <= 0.01


def test_forest_of_a_perfect_model() -> None:
    tests, beyond = SPACE.tests(0, 2), SPACE.tests(3)
    assert (forest(tests, np.ones(len(tests)), beyond) == 1).all()


def test_default_beats_the_forest_and_its_intervals_cover(synthetic: Callable[..., Any]) -> None:
    ours, theirs, covered = [], [], []
    for seed in range(4):
        world = synthetic(SPACE, 1000, seed, together=1.5)
        measured, surrogate, _known = Running(world.look, SPACE, 1000, None, Plan(), Budget(24)).run()
        assert surrogate is not None
        truth = world.share(surrogate.tests)
        pairs = measured.tests.order <= 2
        ours.append(np.abs(surrogate.predicted.value - truth).mean())
        theirs.append(np.abs(forest(measured.tests.take(pairs), measured.share[pairs], surrogate.tests) - truth).mean())
        open_ = np.setdiff1d(np.arange(len(truth)), surrogate.rows)
        low, high = surrogate.predicted.low[open_], surrogate.predicted.high[open_]
        covered += ((low <= truth[open_]) & (truth[open_] <= high)).tolist()
    assert np.mean(ours) <= 0.4 * np.mean(theirs)
    assert np.mean(covered) >= 0.8


def test_surrogate_of_a_model_without_scores(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE, 600)

    def look(*asked: Any) -> Any:
        from opmon.robustness.evaluation import Judged

        for visit, found in world.look(*asked):
            yield visit, Judged(found.right, None)

    _, surrogate, _ = Running(look, SPACE, 600, None, Plan(), Budget(24)).run()
    assert surrogate is not None
    assert np.abs(surrogate.predicted.value - world.share(surrogate.tests)).mean() < 0.03


def test_ordered_space_tells_the_orders_apart() -> None:
    """a before b does harm, b before a does not."""
    space = Space(("a", "b", "c"), levels=2, ordered=True)
    share = {}
    for chain in space.tests().chains():
        names = "".join("abc"[which] for which, _ in chain)
        share[chain] = 0.9 - 0.1 * len(chain) - (0.3 if "a" in names and "b" in names.partition("a")[2] else 0)

    def look(tests: Any, visits: Any) -> Any:
        from opmon.robustness.evaluation import Judged

        for rows, start, stop in visits:
            values = np.array([share[tests.steps(row)] for row in rows])
            right = np.arange(1000)[start:stop] % 100 < values[:, None] * 100
            yield (rows, start, stop), Judged(right.ravel(), None)

    _, surrogate, _known = Running(look, space, 1000, None, Plan(half_width=None), Budget(24)).run()
    assert surrogate is not None
    truth = np.array([share[chain] for chain in surrogate.tests.chains()])
    assert np.abs(surrogate.predicted.value - truth).mean() < 0.05
    assert np.corrcoef(surrogate.predicted.value, truth)[0, 1] > 0.9


def test_without_pairs_nothing_is_predicted(synthetic: Callable[..., Any]) -> None:
    world = synthetic(SPACE, 200)
    measured = measure(world.look, SPACE.tests(0, 1), 200, ALL)
    with pytest.raises(InputError, match="was not run"):
        kirkwood(Known.of(measured, SPACE.levels), SPACE.tests(3))


def test_independence_test_keeps_its_level() -> None:
    """Perturbations that fell inputs independently are called dependent about once in twenty."""
    space, rejected = Space(("a", "b"), levels=2), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        stands = rng.random((2, 3, 1500)) < np.array([1, 0.85, 0.7])[None, :, None]
        known = _stands(space, stands)
        rejected += independence_test(known).p_value < 0.05
    assert rejected <= 20


def test_independence_test_finds_dependence() -> None:
    space = Space(("a", "b"), levels=2)
    rng = np.random.default_rng(0)
    strength = rng.random(1500)
    stands = strength[None, None] < np.array([1, 0.85, 0.7])[None, :, None]
    found = independence_test(_stands(space, np.repeat(stands, 2, axis=0)))
    assert found.p_value < 1e-6
    assert found.degrees == 4


def _stands(space: Space, stands: np.ndarray) -> Known:
    """``stands[j, s, i]``: input i withstands perturbation j at severity s."""
    tests = space.tests(0, 2)
    right = np.array([np.logical_and(stands[0, a], stands[1, b]) for a, b in tests.severities.tolist()]).astype(np.int8)
    share, n = right.mean(axis=1), len(tests)
    zero = np.zeros(n)
    measured = Measured(tests, right, None, np.full(n, right.shape[1]), share, zero, share, share, np.ones(n, bool))
    return Known.of(measured, space.levels)


def test_shrunk_kirkwood_is_independence_where_pairs_are_noise() -> None:
    tests = SPACE.tests(0, 2)
    share = 0.9 * np.exp(-0.05 * tests.severity_sum)
    noisy = share * np.exp(0.01 * np.random.default_rng(0).normal(size=len(share)) * (tests.order == 2))
    plain = with_shares(noisy)
    known = replace(plain, measured=replace(plain.measured, error=0.012 * noisy))
    beyond = SPACE.tests(3)
    truth = 0.9 * np.exp(-0.05 * beyond.severity_sum)
    assert kirkwood(known, beyond, shrunk=True) == pytest.approx(independence(known, beyond))
    raw = np.abs(kirkwood(known, beyond) - truth).mean()
    assert np.abs(kirkwood(known, beyond, shrunk=True) - truth).mean() < raw


def test_shrunk_kirkwood_keeps_what_is_no_noise() -> None:
    tests, s = SPACE.tests(0, 2), SPACE.tests(0, 2).severities.astype(float)
    share = 0.9 * np.exp(-0.05 * s.sum(axis=1) - 0.02 * s[:, 0] * s[:, 1])
    plain = with_shares(share)
    known = replace(plain, measured=replace(plain.measured, error=np.full(len(tests), 0.002)))
    beyond = SPACE.tests(3)
    assert kirkwood(known, beyond, shrunk=True) == pytest.approx(kirkwood(known, beyond), abs=0.005)
