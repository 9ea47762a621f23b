"""Checks that the keys of one monitor fit together: its problem, variables, sampler, rules and way of scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon import plugins
from opmon.config.consistency_of_designs import check_design
from opmon.config.consistency_of_keeping import check_keeping
from opmon.config.consistency_of_labels import check_labels
from opmon.config.consistency_of_rules import check_lines, check_rules
from opmon.config.part import at_key, unknown
from opmon.config.slices import check_slices
from opmon.errors import InputError
from opmon.problems import traits
from opmon.scoring.outputs.sets import HALF

if TYPE_CHECKING:
    from collections.abc import Callable

    from opmon.config.monitor import MonitorSettings

FREE = ("confidence", "margin", "entropy", "gini")
"""The variables that come with the probabilities of a classifier, and need not be listed."""


def check(monitor: MonitorSettings) -> None:
    """Raise an error at the first key that does not fit the others."""
    for check_one in _CHECKS:
        check_one(monitor)


def _sampler_fits_problem(monitor: MonitorSettings) -> None:
    of_classes = [name for name in monitor.drawn_by if not _tells_of(monitor, name) and _needs_classes(monitor, name)]
    if of_classes:
        raise at_key(
            "sampler",
            f"the variable {of_classes[0]!r} is of classification only; for {monitor.problem} use type: srs",
        )


def _unit_is_of_numbers(monitor: MonitorSettings) -> None:
    holds = traits(monitor.problem)
    if monitor.unit is not None and not holds.of_numbers:
        raise at_key("unit", "is that of a regression's labels; classes and scores have none: leave it out")
    if monitor.tolerance is not None and (holds.right_or_wrong or monitor.scale == "pass_fail"):
        raise at_key("tolerance", "is of numbers and scores; an answer that is right or wrong has none: leave it out")


def _several_classes_are_scored(monitor: MonitorSettings) -> None:
    """Where several classes may hold, each has a score of its own; changed inputs are answered with one class."""
    if monitor.problem != "multilabel":
        if monitor.scoring.threshold != HALF:
            why = f"is of problem: multilabel; the problem is {monitor.problem}: leave it out"
            raise at_key("scoring", why, "threshold")
        return
    if monitor.columns.threshold is not None:
        raise at_key(
            "columns", "is of one score and two classes; with multilabel say scoring: {threshold: 0.4}", "threshold"
        )
    if monitor.robustness is not None:
        raise at_key("robustness", "changed inputs are answered with one class or number; with multilabel leave it out")


def _outputs_are_judged(monitor: MonitorSettings) -> None:
    """What people see and say of outputs, where these are judged."""
    if traits(monitor.problem).compares:
        if monitor.labels.scale is not None:
            raise at_key("labels", f"is of problem: judged; the problem is {monitor.problem}: leave it out", "scale")
        return
    if monitor.scoring.by != "logged":
        raise at_key("scoring", "outputs that people judge are those that production logged: leave scoring out")
    if monitor.columns.prediction is None:
        raise at_key("columns", "problem: judged needs prediction, the column with the output that people judge")
    for key, given in (("classes", monitor.classes), ("judge", monitor.judge and monitor.judge.plugin.registered)):
        if given:
            raise at_key(key, "is of classes and numbers; an output that people judge has none: leave it out")
    if monitor.columns.scores or monitor.columns.threshold is not None:
        raise at_key("columns", "scores and threshold are of classes; an output that people judge has none")


def _variables_are_known(monitor: MonitorSettings) -> None:
    for head in monitor.variables:
        if not _tells_of(monitor, head.name) and head.plugin.of_classes:
            others = ", ".join(name for name in plugins.names("head") if not plugins.class_of("head", name).of_classes)
            raise at_key("variables", f"{head.type!r} is of classification only; for {monitor.problem} use {others}")
    free = FREE if traits(monitor.problem).of_classes else ()
    known = {*free, *(head.name for head in monitor.variables)}
    for name in monitor.drawn_by:
        if name not in known and name not in plugins.names("head"):
            raise at_key(
                "sampler", f"the variable {name!r}: {unknown(name, [*known, *plugins.names('head')], 'variable')}"
            )


def _log_has_what_is_read(monitor: MonitorSettings) -> None:
    by, columns = monitor.scoring.by, monitor.columns
    if by == "logged":
        scored = traits(monitor.problem).of_classes
        if columns.prediction is None and not (columns.scores and scored):
            also = ", or columns.scores the ones with the scores" if scored else ""
            raise at_key("columns", f"scoring: {{by: logged}} needs prediction, the column with the answer{also}")
        rival = next((rule for rule in monitor.rules if rule.plugin.rival_version() is not None), None)
        if rival is not None:
            raise at_key("rules", f"{rival.type!r} asks another version, and scoring: {{by: logged}} runs no model")
    elif columns.scores:
        raise at_key("columns", f"scores are read with scoring: {{by: logged}}, and scoring.by is {by}")


def _graph_is_run_where_needed(monitor: MonitorSettings) -> None:
    by = monitor.scoring.by
    if by == "onnx":
        return
    if monitor.convert_sklearn:
        raise at_key("convert_sklearn", f"makes an ONNX graph, and scoring.by is {by}: leave it out")
    inside = [*monitor.heads]
    inside += [name for name in monitor.drawn_by if name in FREE and name not in monitor.at_hand]
    if inside:
        raise at_key(
            "variables",
            f"{inside[0]!r} comes from the model's ONNX graph, which scoring: {{by: {by}}} does not run; name a "
            f"column of the log instead, such as variables: {{risk: score_column}}",
        )
    if monitor.sampler.plugin.activation_levels is not None:
        raise at_key("sampler", f"{monitor.sampler.type!r} looks at a layer of the ONNX graph; scoring.by is {by}")
    if monitor.robustness is not None:
        raise at_key("robustness", f"changed inputs are answered by the ONNX graph; scoring.by is {by}: leave it out")


def _measures_fit(monitor: MonitorSettings) -> None:
    """Measures are of the monitor's problem and classes, and what they are computed from is there."""
    names = monitor.class_names
    for place, measure in enumerate(monitor.measures):
        if monitor.problem not in measure.plugin.problems:
            fitting = [
                name
                for name in plugins.names("measure")
                if monitor.problem in plugins.class_of("measure", name).problems
            ]
            raise at_key(
                "measures",
                f"{measure.type!r} is no measure for problem: {monitor.problem}; those for it are: "
                f"{', '.join(fitting)}",
                place,
            )
        if names is not None:
            try:
                measure.plugin.check(names)
            except InputError as exc:
                raise at_key("measures", str(exc), place) from exc
        columns = monitor.columns
        if measure.plugin.needs_scores and monitor.scoring.by == "logged" and not columns.gives_scores:
            raise at_key(
                "measures",
                f"{measure.key!r} is computed from scores, and the log has none: name their column in columns.scores, "
                "or leave it out",
                place,
            )


def _main_is_measured(monitor: MonitorSettings) -> None:
    keys = [measure.key for measure in monitor.measures]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise at_key("measures", f"{twice!r} is listed twice; leave one of them out")
    try:
        main = monitor.main_measure
    except ValueError as exc:
        raise at_key("main", str(exc)) from exc
    if main is not None and main.plugin.is_table:
        raise at_key("main", f"{main.key!r} is a table, and the main measure is one number; name another of them")


def _names_differ(monitor: MonitorSettings) -> None:
    for key, names in (
        ("variables", [head.name for head in monitor.variables]),
        ("rules", [rule.name for rule in monitor.rules]),
        ("actions", [action.name for action in monitor.actions]),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise at_key(key, f"two of them are called {twice!r}; give each a 'name:' of its own")


_CHECKS: tuple[Callable[[MonitorSettings], None], ...] = (
    _main_is_measured,
    _sampler_fits_problem,
    _unit_is_of_numbers,
    _several_classes_are_scored,
    _outputs_are_judged,
    check_rules,
    _variables_are_known,
    _log_has_what_is_read,
    _graph_is_run_where_needed,
    check_design,
    check_labels,
    _measures_fit,
    check_lines,
    _names_differ,
    check_slices,
    check_keeping,
)


def _tells_of(monitor: MonitorSettings, variable: str) -> bool:
    """Whether a variable that is of classes tells something of this problem: those that come with the scores do of
    several classes as well."""
    holds = traits(monitor.problem)
    return holds.one_class or (holds.of_classes and variable in FREE)


def _needs_classes(monitor: MonitorSettings, variable: str) -> bool:
    """Whether a variable, listed or known by its type, is of a model that tells classes apart."""
    listed = {head.name: head.plugin for head in monitor.variables}
    if variable in listed:
        return listed[variable].of_classes
    return variable in plugins.names("head") and plugins.class_of("head", variable).of_classes
