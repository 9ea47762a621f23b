"""Two versions of a model, judged on the inputs that were labelled for the monitor anyway."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opmon import plugins
from opmon.abc import Estimator
from opmon.decisions.comparison import Comparison, Paired, compare_versions
from opmon.errors import InputError
from opmon.problems import traits
from opmon.stages.compared import asked_of_both, require_two
from opmon.stages.estimate import read_answers
from opmon.stages.rivals import outcomes_of, predictions_of
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.types import ModelVersion


def compare(
    work: Toolbox,
    first: ModelVersion,
    second: ModelVersion,
    newest: int | None,
    alpha: float = 0.05,
    fresh: bool = False,
) -> Comparison:
    """Ask both versions for their answers to every labelled draw of the last ``newest`` rounds, and compare.

    ``fresh``: only rounds that were opened after both were registered, so that neither can have learned from them.
    """
    if not traits(work.settings.problem).right_or_wrong:
        raise InputError(
            f"versions are compared by which of them is right where the other is wrong, and monitor {work.name!r} is "
            f"told by its {work.settings.quantity.name}: compare_measures compares them by that"
        )
    if work.settings.scoring.by == "logged":
        raise InputError(
            f"monitor {work.name!r} has scoring: {{by: logged}}, and no version can be asked for answers; with onnx "
            f"and flavor the model is run"
        )
    require_two(first, second)
    found, before = asked_of_both(
        work, first, second, newest, lambda round_, _: _paired(work, round_, first, second), fresh=fresh
    )
    return replace(compare_versions(found, alpha), known_before=before)


def _paired(work: Toolbox, round_: Round, first: ModelVersion, second: ModelVersion) -> Paired:
    with work.store.read() as connection:
        answers = read_answers(connection, round_)
    labelled = [task.position for task in answers.tasks if task.truth is not None]
    problem = round_.plan.problem
    losses, rival = (
        outcomes_of(answers.tasks, answers.sample, predictions_of(work, round_, model, labelled), problem)
        for model in (first, second)
    )
    both = ~np.isnan(losses) & ~np.isnan(rival)
    sample = replace(answers.sample, outcomes=np.where(both, losses, np.nan))
    rival = np.where(both, rival, np.nan)
    design: Estimator = plugins.make("estimator", sample.draw.design)
    variance = design.variance(sample, np.nan_to_num(losses - rival))
    return Paired(sample, rival, design, design.coefficients(sample), variance)
