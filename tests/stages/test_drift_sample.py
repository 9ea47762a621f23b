"""What of a round is compared with the reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from opmon.stages.drift import _some


def test_a_part_of_the_sample_is_of_the_whole_round() -> None:
    """Where inputs came twice, or could not be scored, fewer are compared: not those of its morning."""
    hours = pa.table({"hour": np.repeat(np.arange(24), 80)})
    found = _some(hours, 960, np.random.default_rng(1))["hour"].to_numpy()
    assert len(found) == 960
    assert set(found) == set(range(24))
    assert (np.diff(found) >= 0).all()
    assert _some(hours, 5000, np.random.default_rng(1)) is hours
