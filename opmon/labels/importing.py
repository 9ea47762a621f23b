"""Label files are imported: all of their answers or none, or, where that is asked for, all that can be."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from opmon.errors import InputError
from opmon.labels._uncollected import uncollected
from opmon.labels.files import LabelFile
from opmon.labels.rows import ImportedLabel, Refused, guarded
from opmon.private import new_private
from opmon.replies import UNNAMED, is_nan
from opmon.store import queue
from opmon.store.engine import Store
from opmon.store.matching import match
from opmon.types import Label
from opmon.wording import counted

_TOLD = 10
_COLUMNS = ("line", "why", "task_key", "task_id", "monitor", "round", "input_id", "label", "annotator")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the rows of a label file."""

    new: int
    unchanged: int
    """Answers that were known already."""
    unanswered: int
    not_asked: int
    """Rows of inputs that no label was asked of."""
    refused: tuple[Refused, ...] = ()


def import_file(
    store: Store, file: LabelFile, name: str, now: datetime, *, only_asked: bool = False, partial: bool = False
) -> Imported:
    """Record the answers of a file in one transaction.

    With ``partial`` those that cannot be taken are left out and given back with the reason; else they are an error, and
    nothing is recorded. ``only_asked``: rows of inputs that no label was asked of are left out and counted. A row that
    does not say when it was said was said when the file was saved: so the same file says nothing new a second time.
    """
    with uncollected():
        return _imported(store, file, name, now, only_asked, partial)


def _imported(store: Store, file: LabelFile, name: str, now: datetime, only_asked: bool, partial: bool) -> Imported:
    with store.read() as connection:  # tasks do not change: nobody waits while they are looked up
        matched = match(connection, file.labels, only_asked=only_asked)
    by_line = {label.line: label for label in file.labels}
    refused = [*file.refused, *(Refused(line, why, by_line.get(line)) for line, why in matched.refused)]
    _require(refused, name, partial)
    pairs = [(line, task) for line, task in zip(file.labels, matched.task_ids, strict=True) if task is not None]
    said_at = min(file.saved_at or now, now)
    labels = [
        Label(task, line.annotator, line.truth, line.at or said_at, line.why, line.seconds) for line, task in pairs
    ]
    with store.write(unhurried=True) as connection:
        recorded, problems = queue.record_each(connection, labels, now)
        wrong = [
            Refused(line.line, f"cannot be taken: {problem}", line)
            for (line, _), problem in zip(pairs, problems, strict=True)
            if problem is not None
        ]
        blank = [each for each in wrong if each.label is not None and is_nan(each.label.truth)]
        unanswered = [each for each in blank if UNNAMED not in each.why]
        refused += [each for each in wrong if each not in unanswered]
        _require(refused, name, partial)
    not_asked = len(file.labels) - len(pairs) - len(matched.refused)
    told = tuple(sorted(refused, key=lambda each: each.line))
    return Imported(recorded.new, recorded.unchanged, file.unanswered + len(unanswered), not_asked, told)


def _require(refused: Sequence[Refused], name: str, partial: bool) -> None:
    if partial or not refused:
        return
    told = "".join(f"\n  line {each.line} {each.why}" for each in refused[:_TOLD])
    more = f"\n  … and {len(refused) - _TOLD:,} more" if len(refused) > _TOLD else ""
    raise InputError(
        f"no label of {name} was recorded, because of {counted(len(refused), 'line')}:{told}{more}\n"
        f"opmon labels import --partial takes the others, and writes a file with these"
    )


def write_refused(path: Path, refused: Sequence[Refused]) -> None:
    """Write every row that was refused with its reason, as a table for spreadsheets."""
    path.unlink(missing_ok=True)
    with new_private(path) as stream:
        stream.write("\ufeff")
        table = csv.writer(stream, lineterminator="\r\n")
        table.writerow(_COLUMNS)
        for each in refused:
            table.writerow([each.line, guarded(each.why), *_cells(each.label)])


def _cells(label: ImportedLabel | None) -> list[object]:
    """What the row says, as far as it could be read."""
    if label is None:
        return [""] * 7
    texts = (label.task_key, label.task_id, label.monitor, label.round, label.input_id, label.truth, label.annotator)
    return ["" if text is None else guarded(text) if isinstance(text, str) else text for text in texts]
