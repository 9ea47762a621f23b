from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators.measured import measured
from opmon.quantities import MAE
from tests.measures.made import SRS, drawn, estimate, measure, predicted

RNG = np.random.default_rng(3)
TRUTH = RNG.normal(size=60)
SAID = TRUTH + RNG.normal(size=60)


def test_mean_absolute_error_has_the_unit_of_the_label() -> None:
    found = estimate(predicted(TRUTH, SAID), measure("mean_absolute_error"), "days")
    assert found.value == pytest.approx(np.abs(TRUTH - SAID).mean())
    assert found.quantity == MAE.measured_in("days")
    assert found.quantity.better == "lower"
    assert 0 < found.low < found.value < found.high


def test_a_census_is_exact() -> None:
    rows = predicted(TRUTH, SAID)
    found = measured(SRS, drawn(rows, len(TRUTH), replacement=False), rows, measure("mean_absolute_error"))
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high)
