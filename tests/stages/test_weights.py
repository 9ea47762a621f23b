"""How many inputs an answered one stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Estimator
from opmon.stages.weights import weight_of
from opmon.types import Draw, Estimate, Sample


class Unweighted(Estimator):
    """An estimator that does not tell what its draws stand for."""

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return Estimate(1.0, 0.0, 1.0, n=1, frame_size=1, response=1.0, method="mine")


def test_an_input_drawn_twice_stands_for_both() -> None:
    draw = Draw("srs", 100, np.array([3, 5, 3, 7]), constants={"replacement": np.array(True)})
    assert weight_of(Sample(draw, np.zeros(4))) == {3: 50.0, 5: 25.0, 7: 25.0}


def test_a_design_that_does_not_tell_has_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones would be wrong without a word."""

    def make(kind: str, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        return Unweighted()

    monkeypatch.setattr(plugins, "make", make)
    assert weight_of(Sample(Draw("mine", 100, np.arange(4)), np.zeros(4))) is None
