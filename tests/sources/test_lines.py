"""Rows end where a newline is, wherever it stands among the words in which they are looked for."""

from __future__ import annotations

import numpy as np

from opmon.sources._lines import Lines


def test_newlines_are_found_in_text_of_any_length_and_density() -> None:
    rng = np.random.default_rng(0)
    for size in [*range(1, 40), 4097]:
        for share in (0.0, 0.05, 0.5, 1.0):
            data = np.where(rng.random(size) < share, 10, 97).astype(np.uint8).tobytes()
            assert Lines(None, 1 << 20).row_ends(data).tolist() == [i + 1 for i in range(size) if data[i] == 10]
