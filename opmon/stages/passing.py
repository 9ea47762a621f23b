"""Rows that no round takes, because none of them is an input: the cursor passes over them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from opmon.stages.toolbox import Toolbox
from opmon.store import positions, waits
from opmon.types import Slice

log = logging.getLogger(__name__)


def pass_over(work: Toolbox, slices: Sequence[Slice]) -> None:
    """Move the cursor behind the slices; no round has their rows."""
    with work.write() as connection:
        waits.end(connection, work.name)
        positions.move(connection, work.name, {piece.part: piece.stop for piece in slices})
    rows = sum(piece.rows for piece in slices)
    log.info("%s passes over %s rows: none of them fits inputs.where", work.name, f"{rows:,}")
