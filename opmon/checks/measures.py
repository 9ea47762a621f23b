"""Whether the classes that measures and slices name are the model's, where the configuration does not name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opmon.checks.finding import Finding
from opmon.config import MonitorSettings
from opmon.config.slices import cuts_of
from opmon.errors import InputError
from opmon.wording import meant, nearest, sentence


def look_at_measures(monitor: MonitorSettings, classes: Sequence[str] | None) -> Iterator[Finding]:
    """A problem for each measure, and each slice of a predicted class, that a model of these classes does not have."""
    if not classes or monitor.class_names is not None:
        return
    for measure in monitor.measures:
        try:
            measure.plugin.check(classes)
        except InputError as exc:
            what = f"{measure.key}: {sentence(str(exc))} Correct 'measures'"
            yield Finding(f"{monitor.name}: measures", "problem", what, needs_change=True)
    named = [value for cut in cuts_of(monitor) if cut.of == "prediction" for value in cut.values or ()]
    for value in named:
        if value not in classes:
            hint = meant(nearest(value, classes))
            what = f"prediction: there is no class {value!r}{hint}; the classes are: {', '.join(classes)}"
            yield Finding(f"{monitor.name}: slices", "problem", f"{what}. Correct 'slices'", needs_change=True)
