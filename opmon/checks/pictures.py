"""A few pictures that the log names or holds as text: whether they can be had, and what a run does without them."""

from __future__ import annotations

from collections.abc import Iterator

from opmon.checks.finding import Finding, asked
from opmon.checks.sample import Sample, spread
from opmon.config import MonitorSettings
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.inputs.encoded import encoded_all, unreadable
from opmon.stages.captured import named_pictures, picture_columns

_TRIED = 8
"""So many pictures are read, from first to last."""


def look_at_pictures(monitor: MonitorSettings, sample: Sample) -> Iterator[Finding]:
    """A finding for each column of pictures, where a column does not hold them as they are."""
    image = monitor.inputs.image
    for column in picture_columns(monitor, sample.rows):
        few = (decoded(batch.rows.column(column)).to_pylist() for batch in spread(sample.rows, _TRIED))
        some = [cell for cells in few for cell in cells]
        if not named_pictures(some):
            continue
        finding, found = asked(
            f"{monitor.name}: pictures",
            lambda some=some, column=column: (  # type: ignore[misc]
                f"of column {column!r} {len(some)} were tried, and can be read",
                encoded_all(some, column, None if image is None else image.folder),
            ),
        )
        missing = None if found is None else unreadable(found)
        if missing is None:
            yield finding
            continue
        scored = image is not None and image.column == column and monitor.scoring.by != "logged"
        follows = "cannot be scored, and are left out" if scored else "are drawn all the same, and shown without one"
        message = f"{missing}. With opmon run inputs without their picture {follows}"
        yield Finding(finding.about, "warning", message, needs_change=True)
