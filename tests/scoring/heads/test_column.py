"""A variable of the log's own."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.scoring.heads.column import Column


def values(*numbers: float, **given: str) -> list[float]:
    found = Column("risk", **given).of_columns({"risk": np.array(numbers)})  # type: ignore[arg-type]
    assert found.dtype == np.float32
    return [round(float(value), 6) for value in found]


def test_larger_is_more_suspicious_and_what_is_missing_is_as_suspicious_as_any() -> None:
    assert values(0.5, 3, 0, -2, float("nan"), float("inf")) == [0.5, 3, 1e-6, 1e-6, 3, 3]
    assert values(0.9, 0.2, float("nan"), suspicious="low") == [0.1, 0.8, 0.8]
    assert values(float("nan")) == [1]


def test_what_is_no_share_cannot_be_turned_round() -> None:
    with pytest.raises(InputError, match=r"column 'risk' holds 3, .*share between 0 and 1"):
        values(0.2, 3, suspicious="low")
    with pytest.raises(InputError, match="suspicious must be high or low; got 'lo'"):
        Column("risk", "lo")  # type: ignore[arg-type]
