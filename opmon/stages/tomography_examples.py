"""Some inputs under some tests of a tomography: for the picture in the report, and for the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.config.robustness import RobustnessSettings
from opmon.reports.robustness_examples import Example
from opmon.reports.robustness_figures import gallery_figure
from opmon.robustness.codecs import Pictures
from opmon.robustness.measured import Plan
from opmon.robustness.result import Tomography
from opmon.robustness.run import Subject
from opmon.stages.tomography_model import Prepared
from opmon.types import Array

INPUTS = 6
_MOST_CHANGES = 12


@dataclass(frozen=True, eq=False)
class Shown:
    """Some inputs under one test, as perturbations hold them."""

    label: str
    share: float
    measured: bool
    inputs: Array


def shown_inputs(ready: Prepared, settings: RobustnessSettings, result: Tomography, seed: int) -> list[Shown]:
    """The same inputs under a middling and the worst test of each order, the unperturbed ones first."""
    plugged = [entry.plugin for entry in settings.perturbations]
    subject = Subject.of(ready.model, ready.evaluation, plugged, ready.codec, Plan(seed=seed))
    shown = []
    for order in range(min(result.space.highest, 4) + 1):
        rows = np.flatnonzero(result.tests.order == order)
        ranked = rows[np.argsort(result.share[rows])]
        for row in dict.fromkeys((int(ranked[len(ranked) // 2]), int(ranked[0]))):
            steps = result.tests.steps(row)
            inputs = ready.codec.encode(subject.perturbed(steps, min(INPUTS, result.inputs)))
            case = result.case(row)
            shown.append(Shown(case.label, case.share, case.measured, inputs[:INPUTS]))
    return shown


def gallery(ready: Prepared, shown: Sequence[Shown]) -> bytes | None:
    """The figure of them; None where they are no pictures."""
    if not isinstance(ready.codec, Pictures):
        return None
    rows = [(each.label, each.share, each.inputs) for each in shown]
    return gallery_figure(rows, title="Inputs under a middling and the worst test of each order")


def examples(ready: Prepared, shown: Sequence[Shown], features: Sequence[str] | None) -> list[Example]:
    """The same for pages; of tables the columns that a test changes."""
    if isinstance(ready.codec, Pictures):
        return [Example(each.label, each.share, each.measured, pictures=tuple(each.inputs)) for each in shown]
    plain = shown[0].inputs
    names = _names(plain, features)
    return [
        Example(each.label, each.share, each.measured, texts=tuple(_told(plain, each.inputs, names, each is shown[0])))
        for each in shown
    ]


def _names(inputs: Array, features: Sequence[str] | None) -> Sequence[str] | None:
    """The names of the columns of a table; None for texts."""
    if inputs.ndim != 2:
        return None
    width = inputs.shape[1]
    return features if features and len(features) == width else [f"column {number + 1}" for number in range(width)]


def _told(plain: Array, inputs: Array, names: Sequence[str] | None, is_plain: bool) -> list[str]:
    if names is None:
        return [str(each) for each in inputs]
    if is_plain:
        return [_listed([f"{name} {value:.4g}" for name, value in zip(names, row, strict=True)]) for row in inputs]
    told = []
    for before, after in zip(plain, inputs, strict=True):
        changed = [at for at in range(len(names)) if not np.array_equal(before[at], after[at], equal_nan=True)]
        words = [f"{names[at]} {before[at]:.4g} → {after[at]:.4g}" for at in changed]
        told.append(_listed(words) if words else "unchanged")
    return told


def _listed(words: Sequence[str]) -> str:
    rest = len(words) - _MOST_CHANGES
    return "; ".join([*words[:_MOST_CHANGES], *([f"and {rest} more"] if rest > 0 else [])])
