"""What is expected of a round before its labels: values worked by hand, identities, and how often intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from opmon.errors import InputError
from opmon.expected import Miss, Past, Seen, expect, from_scores
from opmon.expected.level import ahead
from opmon.expected.widening import Widening


def seen(own: np.ndarray, said: int = 0) -> Seen:
    return Seen({"confidence": own}, np.full(len(own), said))


def bare(count: int) -> Seen:
    return Seen({}, np.full(count, -1))


def test_without_variables_it_is_the_mean_of_the_labels() -> None:
    losses = np.array([1.0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    found = expect([Past(1, bare(10), losses, np.ones(10))], [], bare(1000), 2, binary=True)
    assert found.value == pytest.approx(0.2, abs=1e-3)  # 2 of 10
    weights = np.array([3.0, 3, *np.ones(8)])
    found = expect([Past(1, bare(10), losses, weights)], [], bare(1000), 2, binary=True)
    assert found.value == pytest.approx(6 / 14, abs=1e-3)  # the two stand for six inputs of fourteen


def test_squared_errors_have_their_own_unit() -> None:
    losses = np.array([4.0, 9.0, 1.0, 2.0])
    past = [Past(1, bare(4), losses, np.ones(4))]
    found = expect(past, [], bare(50), 2, binary=False, scores=False, bounds=(0, np.inf))
    tenfold = [Past(1, bare(4), 10 * losses, np.ones(4))]
    larger = expect(tenfold, [], bare(50), 2, binary=False, scores=False, bounds=(0, np.inf))
    assert found.value == pytest.approx(4.0, rel=1e-2)
    assert (larger.value, larger.sd) == (pytest.approx(10 * found.value), pytest.approx(10 * found.sd))


def test_scores_alone_are_their_mean_in_a_wide_interval() -> None:
    found = from_scores(seen(np.array([0.1, 0.3])))
    # 0.2, with a quarter of the deviation of a single loss (0.4) and Student's 2.306 of eight degrees of freedom
    assert (found.value, found.sd) == (pytest.approx(0.2), pytest.approx(0.1))
    assert found.high == pytest.approx(0.2 + 2.306 * 0.1, abs=1e-3)
    with pytest.raises(InputError, match="confidence"):
        from_scores(Seen({"dsa": np.ones(3)}, np.zeros(3, int)))


def test_few_labels_of_a_calibrated_model_leave_its_scores_as_they_are() -> None:
    rng = np.random.default_rng(3)
    own = rng.beta(1, 6, 40)
    past = [Past(1, seen(own), (rng.random(40) < own).astype(float), np.ones(40))]
    frame = rng.beta(1, 3, 5000)
    found = expect(past, [], seen(frame), 2, binary=True)
    assert found.value == pytest.approx(frame.mean(), abs=0.03)


def test_the_mix_of_a_frame_counts_and_not_that_of_the_labels() -> None:
    rng = np.random.default_rng(4)
    own = rng.beta(1, 6, 2000)
    past = [Past(1, seen(own), (rng.random(2000) < own).astype(float), np.ones(2000))]
    for shape in (3, 20):
        frame = rng.beta(1, shape, 20_000)
        assert expect(past, [], seen(frame), 2, binary=True).value == pytest.approx(frame.mean(), abs=0.02)


def test_a_model_that_is_wrong_three_times_as_often_as_it_says_is_corrected() -> None:
    rng = np.random.default_rng(5)
    past = []
    for number in range(1, 9):
        own = rng.uniform(0, 0.2, 200)
        past.append(Past(number, seen(own), (rng.random(200) < 3 * own).astype(float), np.ones(200)))
    frame = rng.uniform(0, 0.2, 5000)
    found = expect(past, [], seen(frame), 9, binary=True)
    assert found.value == pytest.approx(0.3, abs=0.03)
    assert found.low <= 0.3 <= found.high
    assert frame.mean() < found.low, "what it says itself lies outside"


def test_the_order_of_draws_does_not_count_and_nothing_is_random() -> None:
    rng = np.random.default_rng(6)
    own, wrong = rng.random(100), (rng.random(100) < 0.3).astype(float)
    frame, turned = seen(rng.random(500)), rng.permutation(100)
    one = expect([Past(1, seen(own), wrong, np.ones(100))], [], frame, 2, binary=True)
    other = expect([Past(1, seen(own[turned]), wrong[turned], np.ones(100))], [], frame, 2, binary=True)
    assert (one.value, one.sd) == (pytest.approx(other.value, abs=1e-9), pytest.approx(other.sd, abs=1e-9))


def test_values_that_are_not_known_do_no_harm() -> None:
    own = np.array([0.1, np.nan, 0.4, np.nan])
    rng = np.random.default_rng(7)
    past = [Past(1, seen(rng.random(50)), (rng.random(50) < 0.3).astype(float), np.ones(50))]
    assert 0 <= expect(past, [], seen(own), 2, binary=True).value <= 1


def test_one_right_answer_and_one_wrong_one_are_enough_to_go_on() -> None:
    for losses in ([0.0], [1.0], [0.0, 0.0], [1.0, 1.0]):
        past = [Past(1, seen(np.full(len(losses), 0.2)), np.array(losses), np.ones(len(losses)))]
        found = expect(past, [], seen(np.full(30, 0.2)), 2, binary=True)
        assert 0 <= found.low <= found.value <= found.high <= 1
    with pytest.raises(InputError, match="at least one"):
        Past(1, seen(np.zeros(0)), np.zeros(0), np.zeros(0))


def test_a_level_follows_what_was_measured() -> None:
    steady = ahead([0.1] * 30, [1e-4] * 30, list(range(30)), 30, 0.4)
    assert steady.mean == pytest.approx(0.1, abs=0.01)
    moved = ahead([0.0] * 15 + [0.2] * 15, [1e-4] * 30, list(range(30)), 30, 0.4)
    assert moved.mean == pytest.approx(0.2, abs=0.02)
    assert moved.variance > 2 * steady.variance, "what has moved once may move again"
    assert ahead([0.1], [1e-4], [1], 20, 0.4).variance > ahead([0.1], [1e-4], [1], 2, 0.4).variance


def test_a_level_is_measured_in_its_unit() -> None:
    one = ahead([0.1, 0.2], [0.01, 0.02], [1, 2], 3, 0.5)
    ten = ahead([1.0, 2.0], [1.0, 2.0], [1, 2], 3, 5.0)
    assert (ten.mean, ten.variance) == (pytest.approx(10 * one.mean), pytest.approx(100 * one.variance))


def test_an_interval_widens_by_what_was_missed() -> None:
    assert Widening.of((), 5).factor == 1
    missed = Widening.of([Miss(4, 0.4, sd=0.06, noise=0.0064)], 5)  # 0.4 where 0.1 was to be expected: 16
    assert missed.factor == pytest.approx(((6 + 16) / 7) ** 0.5)
    assert Widening.of([Miss(1, 0.4, sd=0.06, noise=0.0064)], 5).factor < missed.factor, "the older, the less"
    assert Widening.of([Miss(4, 0.01, sd=0.06, noise=0.0064)], 5).factor == 1, "it never narrows"


@pytest.mark.parametrize("kind", ["steady", "drifts", "lies"])
def test_intervals_hold_the_accuracy_of_a_round_as_often_as_they_say(kind: str) -> None:
    """In 15 lives of 12 rounds: a model that is calibrated, one whose scores lie more each round, one always off."""
    held = rounds = 0
    for seed in range(15):
        rng = np.random.default_rng([seed, 11])
        past: list[Past] = []
        misses: list[Miss] = []
        for number in range(12):
            own = rng.beta(1, 5, 1000)
            factor = {"steady": 1.0, "drifts": 1 + number / 10, "lies": 2.0}[kind]
            wrong = (rng.random(1000) < np.minimum(factor * own, 1)).astype(float)
            frame = seen(own)
            found = expect(past, misses, frame, number, binary=True) if past else from_scores(frame)
            held += found.low <= wrong.mean() <= found.high
            rounds += 1
            at = rng.choice(1000, 100, replace=False)
            past.append(Past(number, seen(own[at]), wrong[at], np.ones(100)))
            share = (wrong[at].sum() + 0.5) / 101
            misses.append(Miss(number, found.value - wrong[at].mean(), found.sd, share * (1 - share) / 100))
    assert held >= binom.ppf(0.001, rounds, 0.95), (held, rounds)
