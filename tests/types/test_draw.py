from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.types import Draw, Sample

DRAW = Draw("srs", 10, np.arange(3))


def test_sample_without_a_problem_takes_any_losses() -> None:
    assert Sample(DRAW, np.array([0.0, 1.0, 7.0])).problem is None


def test_sample_of_a_regression_takes_any_losses() -> None:
    assert Sample(DRAW, np.array([0.0, np.nan, 7.0]), "regression").response == pytest.approx(2 / 3)


def test_sample_of_a_classification_is_right_or_wrong() -> None:
    assert Sample(DRAW, np.array([0.0, np.nan, 1.0]), "classification").response == pytest.approx(2 / 3)
    with pytest.raises(InputError, match=r"0 \(right\) or 1 \(wrong\); got 0.5"):
        Sample(DRAW, np.array([0.0, 0.5, 1.0]), "classification")
