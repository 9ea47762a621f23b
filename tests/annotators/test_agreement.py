"""Measures of agreement, by values worked by hand or published."""

from __future__ import annotations

import pytest

from opmon.annotators import cohen, fleiss, krippendorff, percent_agreement
from opmon.annotators.agreement import Units
from opmon.errors import InputError

FLEISS = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]
"""Ten patients, fourteen psychiatrists, five diagnoses: how many named each."""
KRIPPENDORFF = (
    (None, None, None, None, None, "3", "4", "1", "2", "1", "1", "3", "3", None, "3"),
    ("1", None, "2", "1", "3", "3", "4", "3", None, None, None, None, None, None, None),
    (None, None, "2", "1", "3", "4", "4", None, "2", "1", "1", "3", "3", None, "4"),
)
"""Three coders and fifteen units, with answers missing."""
COHEN = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15


def test_percent_agreement_counts_every_input_once() -> None:
    found = percent_agreement([("a", "a", "b"), ("a", "a"), ("a", None)])
    assert found.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.units == 2


def test_cohen_as_worked_by_hand() -> None:
    """p_o = 35/50, p_e = 0.5 · 0.6 + 0.5 · 0.4 = 0.5."""
    found = cohen(COHEN)
    assert found.value == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    # Fleiss, Cohen and Everitt's standard error is 0.127 here
    assert (found.high - found.low) / 2 / 2.0096 == pytest.approx(0.127, abs=0.006)
    assert not found.note


def test_fleiss_as_published() -> None:
    units = [[str(c) for c, many in enumerate(row) for _ in range(many)] for row in FLEISS]
    found = fleiss(units)
    assert found.value == pytest.approx(0.210, abs=0.0005)
    assert found.note == "from 10 inputs only"


def test_krippendorff_as_published() -> None:
    units = list(zip(*KRIPPENDORFF, strict=True))
    assert krippendorff(units).value == pytest.approx(0.691, abs=0.0005)
    assert krippendorff(units, "interval").value == pytest.approx(0.811, abs=0.0005)
    assert krippendorff(units).units == 12


def test_krippendorff_tends_to_fleiss_with_many_inputs() -> None:
    alpha, kappa = krippendorff(COHEN * 200).value, fleiss(COHEN * 200).value
    assert alpha == pytest.approx(kappa, abs=1e-4)


@pytest.mark.parametrize("measure", [cohen, fleiss, krippendorff, percent_agreement])
def test_agreement_does_not_depend_on_the_order_of_inputs_or_the_names_of_classes(measure) -> None:  # type: ignore[no-untyped-def]
    other: Units = [tuple({"y": "left", "n": "right"}[answer] for answer in unit) for unit in reversed(COHEN)]
    one, two = measure(COHEN), measure(other)
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))


def test_agreement_without_spread_is_undefined_and_says_so() -> None:
    assert cohen([("a", "a")] * 5).value is None
    assert krippendorff([("a", "a")] * 5).value is None
    assert percent_agreement([("a", None), (None, "b")]).value is None
    alike = percent_agreement([("a", "a")] * 50)
    assert (alike.value, alike.low, alike.note) == (1.0, None, "all inputs say the same: no interval")


def test_a_wrong_question_is_an_error() -> None:
    with pytest.raises(InputError, match="two annotators"):
        cohen([("a", "b", "c")])
    with pytest.raises(InputError, match="needs numbers"):
        krippendorff([("a", "b")], "interval")
