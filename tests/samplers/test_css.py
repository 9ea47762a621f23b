from __future__ import annotations

import numpy as np

from opmon.samplers.css import ConfidenceStratified
from opmon.types import Frame


def test_css_shares_of_frame_and_budget() -> None:
    chi = np.random.default_rng(1).random(1000)
    draw = ConfidenceStratified().draw(Frame({"confidence": chi}), 50, np.random.default_rng(1))
    assert draw.constants["stratum_size"].tolist() == [800, 100, 100]
    assert np.bincount(draw.columns["stratum"]).tolist() == [10, 20, 20]
    cuts = np.sort(chi)[[800, 900]]
    assert (np.searchsorted(cuts, chi[draw.positions], side="right") == draw.columns["stratum"]).all()


def test_css_splits_ties_at_random() -> None:
    """All inputs alike: the least trusted tenth is any tenth."""
    frame = Frame({"confidence": np.full(100, 0.5)})
    last = set()
    for seed in range(60):
        draw = ConfidenceStratified().draw(frame, 10, np.random.default_rng(seed))
        last |= set(draw.positions[draw.columns["stratum"] == 2].tolist())
    assert len(last) > 60
