from __future__ import annotations

import numpy as np
import pytest

from opmon.config.robustness import RobustnessSettings
from opmon.errors import InputError
from opmon.robustness.space import Space


def test_counts_three_dimensions() -> None:
    space = Space(("a", "b", "c"))
    assert [space.count(order) for order in range(4)] == [1, 15, 75, 125]
    assert space.size == 216 == len(space.tests())


def test_every_test_once() -> None:
    tests = Space(("a", "b", "c"), levels=3).tests()
    assert len(set(tests.chains())) == 64


def test_order_and_sum() -> None:
    space = Space(("a", "b", "c"))
    tests = space.of([(), ((0, 3),), ((0, 1), (2, 5))])
    assert tests.order.tolist() == [0, 1, 2]
    assert tests.severity_sum.tolist() == [0, 3, 6]


def test_ordered_space_has_both_orders() -> None:
    space = Space(("a", "b"), levels=2, ordered=True)
    assert space.size == 1 + 4 + 8
    assert {((0, 1), (1, 2)), ((1, 2), (0, 1))} <= set(space.tests().chains())


def test_max_order() -> None:
    space = Space(tuple("abcdefgh"), max_order=2)
    assert space.tests().order.max() == 2
    assert len(space.tests()) == space.size == 1 + 40 + 28 * 25


def test_steps_are_in_order_of_application() -> None:
    space = Space(("a", "b", "c"), ordered=True)
    assert space.of([((2, 1), (0, 4))]).steps(0) == ((2, 1), (0, 4))
    assert space.label(((2, 1), (0, 4))) == "c 1 → a 4"


def test_take_keeps_rows() -> None:
    tests = Space(("a", "b")).tests()
    assert np.array_equal(tests.take(tests.order == 1).order, np.ones(10))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ()}, "at least one"),
        ({"names": ("a", "a")}, "twice"),
        ({"names": ("a",), "levels": 0}, "levels"),
        ({"names": ("a",), "max_order": 2}, "max_order"),
        ({"names": tuple("abcdefghijkl")}, "max_order"),
    ],
)
def test_broken_space(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Space(**arguments)  # type: ignore[arg-type]


def test_all_pairs_that_are_run_are_bounded() -> None:
    """All eighteen of the papers may be run in pairs; results of more can be read, and single ones are run."""
    Space(tuple(map(str, range(18))), max_order=2).check_runs()
    many = tuple(map(str, range(21)))
    Space(many, max_order=1).check_runs()
    with pytest.raises(InputError, match=r"5,356 tests of one and two.*at most 5,000 can be.*max_order: 1"):
        Space(many, max_order=2).check_runs()


def test_a_configuration_that_cannot_be_run_is_refused() -> None:
    own = [{"type": "noise", "name": f"noise{number}"} for number in range(21)]
    with pytest.raises(ValueError, match="5,356 tests of one and two"):
        RobustnessSettings(kind="table", perturbations=own, max_order=2)
    assert RobustnessSettings(kind="table", perturbations=own, max_order=1).space.size == 106
