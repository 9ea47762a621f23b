"""What drifted in a round and whether with loss, a line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from opmon.types.drifting import RoundDrift


def drift_lines(drift: RoundDrift | None) -> Iterator[Text]:
    """Nothing where nothing was compared, or where nothing drifted and the model is not surely worse."""
    from rich.text import Text

    if drift is None or not (drift.drifted or drift.loss == "loss"):
        return
    yield Text("  Drift (advice):")
    for sentence in drift.words:
        yield Text(f"    {sentence}", style="dim")
