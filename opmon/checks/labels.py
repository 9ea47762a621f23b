"""What annotators are given beside the tasks: gold tasks, guidelines, classes and example pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opmon.checks.finding import Finding, asked
from opmon.config import MonitorSettings
from opmon.errors import InputError
from opmon.stages.asking import gold_of, lacking
from opmon.stages.payloads import payload_of
from opmon.types import Json
from opmon.wording import counted


def look_at_labels(
    monitor: MonitorSettings, row: dict[str, object] | None, classes: Sequence[str] | None
) -> Iterator[Finding]:
    """Whether it is all there; ``row`` is one of the log, ``classes`` are the model's, where they are known."""
    name, labels = monitor.name, monitor.labels
    if labels.gold is not None:
        yield asked(f"{name}: gold", lambda: (_gold(monitor, row, classes), None))[0]
    if labels.guidelines_file is not None or labels.classes:
        yield asked(f"{name}: guidelines", lambda: (_guide(monitor, classes), None))[0]


def _gold(monitor: MonitorSettings, row: dict[str, object] | None, classes: Sequence[str] | None) -> str:
    gold = monitor.labels.gold
    assert gold is not None
    found = gold_of(monitor, classes)
    seen: dict[str, Json] = (
        {} if row is None else payload_of(row, monitor.columns, hidden(monitor), monitor.judged_column)
    )
    if monitor.labels.show_prediction:
        seen["model prediction"] = ""
    alike = [each for each in found if not lacking(monitor, each, seen)]
    if not alike:
        first = ", ".join(map(repr, lacking(monitor, found[0], seen)[:5]))
        raise InputError(
            f"none of the {len(found):,} inputs in {gold.file} can be slipped in: annotators see {first} of every "
            f"other input; put that into each payload"
        )
    others = len(found) - len(alike)
    less = f"; {others:,} others lack something that annotators see of every input" if others else ""
    return f"{gold.file} holds {counted(len(alike), 'input')} of known truth{less}"


def hidden(monitor: MonitorSettings) -> tuple[str, ...]:
    """The columns of the log that annotators do not see, beside those that hold the model's own words."""
    said = (name for name in monitor.reads.answers if name != monitor.judged_column)
    return (*said, *(name for _, name in monitor.truth_columns))


def _guide(monitor: MonitorSettings, classes: Sequence[str] | None) -> str:
    file, told = monitor.labels.guidelines_file, monitor.labels.classes
    if file is not None:
        try:
            file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"labels.guidelines: {file} cannot be read: {exc}") from exc
    missing = [str(path) for guide in told.values() for path in guide.examples if not path.is_file()]
    if missing:
        raise InputError(f"labels.classes: there is no picture {missing[0]}")
    known = monitor.class_names or classes
    strange = [] if known is None else [name for name in told if name not in known]
    if strange:
        raise InputError(
            f"labels.classes describes {strange[0]!r}, which is none of the classes: {', '.join(known or ())}"
        )
    parts = [f"guidelines of {counted(len(monitor.labels.guidelines_text), 'character')}"] * bool(
        monitor.labels.guidelines
    )
    return " and ".join([*parts, *[f"{counted(len(told), 'class description')}"] * bool(told)])
