from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.values import canonical_class, canonical_classes


@pytest.mark.parametrize("value", [3, 3.0, "3", "3.0", " 3.", np.int8(3), np.float32(3), b"3", Decimal("3.00")])
def test_class_three_is_three_wherever_it_comes_from(value: object) -> None:
    assert canonical_class(value) == "3"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (np.bool_(False), "false"),
        ("TRUE", "true"),
        ("007", "007"),
        ("3.50", "3.50"),
        (-0.0, "0"),
        ("-0.0", "0"),
        (np.float32(0.1), "0.1"),
        (2**60, str(2**60)),
        ("cafe\u0301", "caf\u00e9"),
        ("  two words ", "two words"),
    ],
)
def test_class_canonical_text(value: object, text: str) -> None:
    assert canonical_class(value) == text


@pytest.mark.parametrize("value", ["", "  ", float("nan"), float("inf"), None, [1], b"\xff"])
def test_class_that_cannot_be_one_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="class"):
        canonical_class(value)


def test_class_is_its_own_canonical_text() -> None:
    for value in (3.0, "3.0", True, "007", " x "):
        assert canonical_class(canonical_class(value)) == canonical_class(value)


def test_classes_of_an_array_agree_with_one_by_one() -> None:
    for values in (np.array([3.0, 1.5, 3.0]), np.array(["a", "3.0"]), np.array([True, 1, "x"], dtype=object)):
        assert canonical_classes(values).tolist() == [canonical_class(value) for value in values.tolist()]
