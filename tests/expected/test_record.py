"""How well predictions did, in words: what is told of those that were wrong lately."""

from __future__ import annotations

from opmon.expected import Record
from opmon.expected.record import Told
from opmon.quantities import ACCURACY, Quantity


def told(round_: int, off: float, half: float = 0.04, noise: float = 0.03) -> Told:
    return Told(round_, 0.9 + off, 0.9 + off - half, 0.9 + off + half, 0.95, 0.9, 0.9 - noise, 0.9 + noise)


def test_nothing_is_known_before_any_labels() -> None:
    assert Record.of([], ACCURACY) is None


def test_it_says_how_far_off_predictions_were() -> None:
    found = Record.of([told(1, 0.01), told(2, -0.02), told(3, 0.0)], ACCURACY)
    assert found is not None
    assert (found.rounds, found.missed, found.lately) == (3, 0, "")
    assert found.text(ACCURACY) == (
        "such predictions were off by 1 point on average over 3 rounds, and their intervals never missed"
    )


def test_errors_have_the_digits_that_they_bear() -> None:
    error = Quantity("MAE", "days", better="lower")
    found = Record.of([Told(1, 1.05717, 0.9, 1.2, 0.95, 1.0, 0.9, 1.1)], error)
    assert found is not None
    assert "off by 0.057 days on average" in found.text(error)


def test_a_miss_is_further_than_both_intervals_bear() -> None:
    assert not told(1, 0.049).missed  # 3 and 4 points make 5
    assert told(1, 0.051).missed
    assert told(1, -0.051).missed


def test_misses_that_are_no_chance_are_said() -> None:
    rounds = [told(number, 0.0) for number in range(1, 9)] + [told(9, 0.1), told(10, -0.1)]
    found = Record.of(rounds, ACCURACY)
    assert found is not None
    assert found.missed == 2
    assert "missed" not in found.lately, "two of ten may be chance"
    found = Record.of([*rounds[1:], told(11, 0.1)], ACCURACY)
    assert found is not None
    assert found.lately.startswith("They were wrong lately: the interval missed in ")
    assert "3 of the last 10 rounds (rounds 9, 10, 11)" in found.lately


def test_an_error_that_grew_is_said() -> None:
    rounds = [told(number, 0.004) for number in range(1, 8)] + [told(number, 0.03) for number in range(8, 13)]
    found = Record.of(rounds, ACCURACY)
    assert found is not None
    assert "error grew in the last 5 rounds to 3 points on average, from 0.4 points before" in found.lately
