from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from opmon.samplers.deepest import DeepEst
from opmon.types import Frame

CHI = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("activation", ["source", "target"])
def test_deepest_probabilities_are_those_of_its_steps(activation: Literal["source", "target"]) -> None:
    sampler = DeepEst(r=0.8, activation=activation, threshold=0.25)
    for seed in range(50):
        draw = sampler.draw(Frame({"confidence": CHI}), 3, np.random.default_rng(seed))
        w = CHI if activation == "source" else np.where(CHI > 0.25, CHI, 0)
        active = False
        left = [0, 1, 2, 3]
        for k, i in enumerate(draw.positions.tolist()):
            rest = w[left].sum()
            follow = active and rest > 0
            q = 0.8 * w[i] / rest + 0.2 / len(left) if follow else 1 / len(left)
            assert draw.columns["probability"][k] == pytest.approx(q)
            left.remove(i)
            active = active or activation == "target" or CHI[i] > 0.25


def test_deepest_follows_its_probabilities() -> None:
    """Second draws after the most suspicious input: r w/Σw + (1 − r)/3 over the other three."""
    draws = np.array(
        [DeepEst().draw(Frame({"confidence": CHI}), 2, np.random.default_rng(seed)).positions for seed in range(8000)]
    )
    assert np.bincount(draws[:, 0], minlength=4) / 8000 == pytest.approx([0.25] * 4, abs=0.02)
    second = draws[draws[:, 0] == 3][:, 1]
    expected = 0.8 * CHI[:3] / 0.6 + 0.2 / 3
    assert np.bincount(second, minlength=3) / len(second) == pytest.approx(expected, abs=0.04)


def test_deepest_stays_uniform_while_nothing_is_suspicious() -> None:
    draw = DeepEst(threshold=0.9).draw(Frame({"confidence": CHI}), 3, np.random.default_rng(1))
    assert draw.columns["probability"] == pytest.approx([1 / 4, 1 / 3, 1 / 2])


def test_deepest_thresholds_by_variable() -> None:
    values = np.random.default_rng(1).random(100)
    assert DeepEst("confidence")._threshold(values) == 0.3
    assert DeepEst("dsa")._threshold(values) == pytest.approx(values.mean() + 2 * values.std())
    assert DeepEst("lsa")._threshold(values) == pytest.approx(values.mean() + values.var())
