"""What a monitor reads: its sources, with the columns inside columns that its configuration names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opmon.abc import Source
from opmon.config.slices import cuts_of

if TYPE_CHECKING:
    from opmon.config.monitor import MonitorSettings


def inputs_of(monitor: MonitorSettings) -> Source:
    """The source of inputs."""
    inputs = monitor.inputs
    named = [*(inputs.features or ()), *(name for _, name in monitor.columns.named)]
    named += [each.column for each in (inputs.image, inputs.text) if each is not None]
    named += [inputs.tensor] if inputs.tensor else []
    named += [] if monitor.where is None else monitor.where.columns
    named += [column for head in monitor.logged_variables.values() for column in head.columns]
    named += [name for _, name in monitor.truth_columns]
    named += [cut.name for cut in cuts_of(monitor) if cut.of == "column"]
    named += [monitor.proxy_column.column] if monitor.proxy_column else []
    return _patient(monitor, _with_inner(monitor.source.plugin, named), "source")


def truths_of(monitor: MonitorSettings) -> Source | None:
    """The source of truths that arrive by themselves; None where there is none of its own."""
    truth = monitor.truth
    if truth is None or truth.source is None:
        return None
    named = [truth.id or monitor.columns.id or "", truth.label or "", truth.at or ""]
    return _patient(monitor, _with_inner(truth.source.plugin, named), "source of truth")


def _with_inner(source: Source, named: Iterable[str]) -> Source:
    """The source with what lies inside its columns, as far as that is named."""
    from opmon.sources.nested import Nested, is_path

    paths = tuple(dict.fromkeys(name for name in named if is_path(name)))
    return Nested(source, paths) if paths else source


def _patient(monitor: MonitorSettings, source: Source, role: str) -> Source:
    """The source, with a limit on the time that it is waited for."""
    from opmon.sources.patient import Patient

    return Patient(source, monitor.name, role)
