"""Checks that what answers a monitor's questions fits it: truths that arrive, proxies, a judge, annotators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon import plugins
from opmon.config.part import at_key, unknown
from opmon.problems import traits

if TYPE_CHECKING:
    from opmon.config.monitor import MonitorSettings


def check_labels(monitor: MonitorSettings) -> None:
    """Raise an error at the first key that does not fit the others."""
    _truth_is_joined(monitor)
    _proxy_can_assist(monitor)
    _judge_is_asked_enough(monitor)
    _annotators_are_asked(monitor)


def _truth_is_joined(monitor: MonitorSettings) -> None:
    """Truths of a source of their own find their inputs by an id; who asks nobody needs truth that comes by itself."""
    truth, labels = monitor.truth, monitor.labels
    if truth is not None and truth.source is not None and monitor.columns.id is None:
        raise at_key("truth", "is joined with the log by the inputs' ids: name their column in columns.id")
    if labels.annotators == "none" and labels.provider is not None:
        raise at_key("labels", "annotators: none hands no task to a provider: leave one of the two out")
    if truth is not None:
        return
    if labels.annotators == "none":
        raise at_key("labels", "annotators: none leaves nobody who answers: say where truth arrives from in 'truth'")
    if labels.wait_for_truth is not None:
        raise at_key("labels", "wait_for_truth waits for nothing: say where truth arrives from in 'truth'")


def _proxy_can_assist(monitor: MonitorSettings) -> None:
    """A proxy is there, is used, and is of a design that it can assist."""
    judge, chosen = monitor.judge, monitor.estimate.proxy
    if chosen == "judge" and (judge is None or judge.as_labels):
        why = "its answers are labels (as_labels)" if judge else "there is none: say who it is in 'judge'"
        raise at_key("estimate", f"proxy: judge takes the answers of the judge, and {why}")
    if judge is not None and not judge.as_labels and chosen not in (None, "judge"):
        raise at_key("judge", "would be asked for nothing: estimate.proxy names something else; leave one of them out")
    if monitor.proxy is None:
        return
    key = "estimate" if judge is None else "judge"
    design = monitor.sampler.plugin.design or monitor.sampler.type
    if design not in plugins.names("estimator") or not plugins.class_of("estimator", design).assisted:
        can = ", ".join(name for name in plugins.names("estimator") if plugins.class_of("estimator", name).assisted)
        raise at_key(key, f"a proxy cannot assist the sampler {monitor.sampler.type!r}; the samplers it can: {can}")
    if monitor.proxy_column is not None and monitor.proxy_column.says == "answer" and monitor.judged_column is not None:
        raise at_key(
            "estimate", "says: answer is of a truth; of outputs that people judge say right (a score) or wrong"
        )
    if monitor.proxy_column is not None and monitor.proxy_column.says == "right" and traits(monitor.problem).of_numbers:
        raise at_key("estimate", "says: right is of classes; of a regression say answer, or wrong (its squared error)")
    if chosen == "learned" and not monitor.at_hand:
        raise at_key("estimate", "proxy: learned learns from variables, and this monitor has none")


def _judge_is_asked_enough(monitor: MonitorSettings) -> None:
    """A judge is asked about the drawn inputs and about others, and is not the model that it judges."""
    judge = monitor.judge
    if judge is None:
        return
    if judge.plugin.registered == monitor.model:
        raise at_key("judge", f"{monitor.model} would judge itself; name another model")
    if judge.plugin.registered is not None and monitor.scoring.by == "logged":
        raise at_key("judge", "asks another model, and scoring: {by: logged} runs none; use by: onnx, or another judge")
    if not judge.as_labels and judge.most is not None and judge.most < 2 * monitor.sampler.budget:
        raise at_key(
            "judge",
            f"at_most: {judge.most} leaves too few inputs beside those that are drawn: at least twice the sampler's "
            f"budget, {2 * monitor.sampler.budget}, and ten times is better",
        )
    several = monitor.labels.overlap.answers > 1
    if judge.as_labels and (several or monitor.labels.annotators == "none"):
        key = "overlap" if several else "annotators"
        raise at_key("judge", f"as_labels answers for the annotators, one answer for a task: leave labels.{key} out")
    if judge.as_labels and judge.at_most is not None and judge.at_most < monitor.sampler.budget:
        raise at_key("judge", f"at_most: {judge.at_most} is less than the budget of {monitor.sampler.budget} labels")


def _annotators_are_asked(monitor: MonitorSettings) -> None:
    """What is asked of annotators fits what they answer."""
    labels = monitor.labels
    certain = traits(monitor.problem).right_or_wrong or monitor.scale == "pass_fail"
    if labels.overlap.of == "failures" and not certain:
        raise at_key(
            "labels", "overlap of failures is of classes: a number is hardly ever hit; give a share", "overlap"
        )
    if labels.adjudication == "weighted" and not (certain and monitor.problem != "multilabel"):
        what = "weighted is for single classes: of numbers and scores take mean or median, of several classes majority"
        raise at_key("labels", what + ", or name people: {expert: [ann]}", "adjudication")
    if labels.adjudication in ("mean", "median") and certain:
        raise at_key("labels", f"{labels.adjudication} is for numbers and scores: take majority", "adjudication")
    for name in labels.classes if monitor.class_names is not None else ():
        if name not in (monitor.class_names or ()):
            raise at_key("labels", unknown(name, monitor.class_names or (), "class"), "classes", name)
