"""What no round takes: rows of which none is an input, and parts of the log that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from opmon.stages.toolbox import Toolbox
from opmon.store import positions, set_aside, waits
from opmon.types import Slice

log = logging.getLogger(__name__)


def pass_over(work: Toolbox, slices: Sequence[Slice]) -> None:
    """Move the cursor behind the slices; no round has their rows."""
    with work.write() as connection:
        waits.end(connection, work.name)
        positions.move(connection, work.name, {piece.part: piece.stop for piece in slices})
    rows = sum(piece.rows for piece in slices)
    log.info("%s passes over %s rows: none of them fits inputs.where", work.name, f"{rows:,}")


def set_flaws_aside(work: Toolbox, stands: Mapping[str, str]) -> Mapping[str, str]:
    """Note the parts of the log that cannot be read, and stand behind them; gives where the monitor stands now."""
    flaws = work.looks.flaws(stands, work.settings.round.max_inputs)
    with work.store.read() as connection:
        noted = {each.part: each for each in set_aside.of_monitors(connection, [work.name]).get(work.name, [])}
    if any(stands.get(part) != each.passing for part, each in noted.items()):
        with work.write() as connection:
            set_aside.drop_mended(connection, work.name, stands)
    if not flaws:
        return stands
    with work.write() as connection:
        for flaw in flaws:
            before = noted[flaw.part].before if flaw.part in noted else stands.get(flaw.part)
            set_aside.note(connection, work.name, flaw.part, flaw.why, work.clock(), before, flaw.passing)
            log.warning("%s sets %s aside: %s", work.name, flaw.part, flaw.why)
    return {**stands, **{flaw.part: flaw.passing for flaw in flaws}}
