from __future__ import annotations

import numpy as np

from opmon.samplers.srs import SimpleRandom
from opmon.types import Frame

FRAME = Frame({}, size=100)


def test_srs_without_replacement_draws_each_input_once() -> None:
    draw = SimpleRandom().draw(FRAME, 60, np.random.default_rng(1))
    assert len(set(draw.positions.tolist())) == 60


def test_srs_with_replacement_repeats_inputs() -> None:
    draw = SimpleRandom(replacement=True).draw(FRAME, 99, np.random.default_rng(1))
    assert len(draw) == 99
    assert len(draw.unique_positions) < 99


def test_srs_order_is_random() -> None:
    first = [SimpleRandom().draw(FRAME, 10, np.random.default_rng(seed)).positions[0] for seed in range(200)]
    assert np.ptp(first) > 80
