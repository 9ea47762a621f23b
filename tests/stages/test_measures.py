"""A monitor of several measures, one of them main: what is estimated, kept and told of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from opmon.cli import group
from opmon.store import outbox, queue, revisions, rounds, verdicts
from opmon.store.schema import tasks
from opmon.types import Label

CHANGES: dict[str, Any] = {
    "classes": [str(digit) for digit in range(10)],
    "measures": ["accuracy", {"recall": {"class": "8"}}, {"precision": {"class": "8"}}, {"f1": {"average": "macro"}}],
    "main": "recall",
    "rules": [],
    "sampler": {"type": "srs", "budget": 100},
}


def asked(*arguments: str) -> str:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False, catch_exceptions=False).output


def one_round(workbench: Any, database: str, **changes: Any) -> Any:
    """A monitor with one labelled round."""
    monitor = workbench.monitor(database, **changes)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.2)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1
    return monitor


def test_the_main_measure_is_the_estimate_and_the_others_stand_beside_it(
    workbench: Any, database: str, tmp_path: Path
) -> None:
    config = str(workbench.write_yaml(database, **CHANGES))
    monitor = one_round(workbench, database, **CHANGES)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        revision = revisions.latest_estimate(connection, round_.id)
    assert revision is not None
    assert revision.estimate.quantity.name == "recall[8]"
    assert revision.estimate.low < revision.estimate.value < revision.estimate.high
    by_name = {each.quantity.name: each for each in revision.further}
    assert [*by_name] == ["accuracy", "precision[8]", "macro F1"]
    accuracy = by_name["accuracy"].estimate
    assert accuracy is not None
    assert accuracy.value == 1 - revision.failures / 100

    metrics = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert metrics["recall_8/estimate"] == revision.estimate.value
    assert metrics["measure/accuracy"] == accuracy.value
    assert {"measure/macro_F1", "measure/macro_F1_low", "measure/precision_8_high"} <= set(metrics)
    assert "accuracy/estimate" not in metrics
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert float(tags["opmon.recall_8"]) == pytest.approx(revision.estimate.value, abs=1e-4)

    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "Estimated <bdi>recall[8]</bdi>" in page
    assert "macro F1" in page
    kept = json.loads(monitor.registry.download(round_.run_id, "measures.json", tmp_path / "got").read_text())
    assert [each["quantity"] for each in kept] == [*by_name]

    told = asked("status", "-c", config)
    assert f"recall[8] {revision.estimate.quantity.interval(*_bounds(revision.estimate))}" in told
    assert f"accuracy      {accuracy.quantity.interval(*_bounds(accuracy))}" in told
    latest = json.loads(asked("status", "-c", config, "--json"))["latest"]
    assert latest["measures"][0]["estimate"]["value"] == accuracy.value
    shown = asked("rounds", "show", "1", "-c", config)
    assert "recall[8]" in shown
    assert "precision[8]" in shown


class Killed(BaseException):
    """The end of a process, as it is seen from inside."""


def killed_before_the_report(monitor: Any) -> None:
    """A cycle that ends when it first tells MLflow of the estimate, which is in the database by then."""

    def dies(*arguments: object, **named: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor.registry, "record", dies)
        with pytest.raises(Killed):
            monitor.advance()


def _bounds(estimate: Any) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def of_round(workbench: Any, monitor: Any, number: int = 1) -> tuple[Any, Any]:
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, number)
        return round_, revisions.latest_estimate(connection, round_.id)


SCORED: dict[str, Any] = {
    "measures": [
        "log_loss",
        "calibration_error",
        {"auc": {"class": "8"}},
    ],
    "sampler": {"type": "srs", "budget": 100},
    "rules": [{"type": "measure_worse", "threshold": 0.05, "of": "log_loss"}],
}


def test_the_scores_of_drawn_inputs_are_kept_for_measures_of_them(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    """With a simple random sample every answer weighs alike: what scikit-learn says of them is what is estimated."""
    from sklearn.metrics import roc_auc_score

    cost = {str(a): {str(b): abs(a - b) for b in range(10) if a != b} for a in range(10)}
    changes = {**SCORED, "classes": CHANGES["classes"]}
    changes["measures"] = [*SCORED["measures"], {"cost": {"matrix": cost, "unit": "EUR"}}, "confusion_matrix"]
    monitor = one_round(workbench, sqlite, **changes)
    round_, revision = of_round(workbench, monitor)
    with monitor.store.read() as connection:
        tasks = queue.answers(connection, round_.id)
    truth, said = ([getattr(task, name) for task in tasks] for name in ("truth", "prediction"))
    scores = np.array([task.scores for task in tasks], np.float64)
    assert [round_.classes[k] for k in scores.argmax(axis=1)] == said
    found = {each.quantity.name: each.estimate for each in revision.further}
    of_truth = scores[np.arange(100), [round_.classes.index(name) for name in truth]]
    assert found["log loss"].value == pytest.approx(-np.log(np.maximum(of_truth, 1e-15)).mean(), rel=1e-6)
    of_8 = np.array(truth) == "8"
    assert found["AUC[8]"].value == pytest.approx(roc_auc_score(of_8, scores[:, 8]), rel=1e-6)
    assert found["cost"].value == pytest.approx(
        np.mean([abs(int(a) - int(b)) for a, b in zip(truth, said, strict=True)])
    )
    assert len([name for name in found if name.startswith("confusion[")]) == 100
    keys = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert "measure/AUC_8_low" in keys
    assert not [key for key in keys if "confusion" in key], "a hundred charts are none that anybody looks at"
    with monitor.store.read() as connection:
        (verdict,) = verdicts.latest_verdicts(connection, round_.id)
    assert verdict.state == "alarm"
    assert verdict.message.startswith("log loss ")
    with monitor.store.read() as connection:
        (event,) = outbox.listing(connection, workbench.name, 10)
    assert event["body"]["estimate"]["quantity"] == "log loss", "what the rule watches, and not the accuracy"
    for name in ("confusion_matrix.png", "calibration.png"):
        assert monitor.registry.download(round_.run_id, name, tmp_path / "got").read_bytes().startswith(b"\x89PNG")


def test_what_is_estimated_of_a_round_stays_when_the_configuration_changes(workbench: Any, database: str) -> None:
    """Killed between the estimate and the report, and configured anew before it goes on."""
    monitor = workbench.monitor(database, **CHANGES)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.2)
    killed_before_the_report(monitor)
    changed = {**CHANGES, "measures": ["accuracy", "balanced_accuracy"], "main": None}
    monitor = workbench.monitor(database, **changed)
    workbench.write_window()
    assert monitor.advance().problems == []
    _, revision = of_round(workbench, monitor)
    assert revision.estimate.quantity.name == "recall[8]"
    assert [each.quantity.name for each in revision.further] == ["accuracy", "precision[8]", "macro F1"]
    workbench.answer(monitor, wrong=0.2)
    assert monitor.advance().problems == []
    _, revision = of_round(workbench, monitor, 2)
    assert revision.estimate.quantity.name == "accuracy"
    assert [each.quantity.name for each in revision.further] == ["balanced accuracy"]


def test_late_labels_revise_every_measure(workbench: Any, sqlite: str, clock: Any) -> None:
    changes = {**CHANGES, "labels": {"max_wait": "1d"}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.2, limit=70)
    monitor.advance()
    round_, provisional = of_round(workbench, monitor)
    assert provisional.estimate.provisional
    clock.pass_(days=2)
    assert monitor.advance().problems == []
    workbench.answer(monitor, wrong=0.2)
    assert monitor.advance().problems == []
    _, late = of_round(workbench, monitor)
    metrics = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    before, after = provisional.further[0].estimate, late.further[0].estimate
    assert (before.response, after.response) == (0.7, 1.0)
    assert metrics["measure/accuracy_provisional"] == before.value
    assert metrics["measure/accuracy"] == before.value, "the final one is of the labels that had come by then"
    assert metrics["measure/accuracy_revised"] == after.value
    assert metrics["recall_8/revised"] == late.estimate.value


def test_a_round_whose_labels_do_not_tell_its_main_measure_says_why_and_tells_the_others(
    workbench: Any, sqlite: str, tmp_path: Path
) -> None:
    changes = {
        **CHANGES,
        "classes": None,
        "measures": [{"recall": {"class": "8"}}, "accuracy", {"f1": {"class": "no"}}],
    }
    monitor = workbench.monitor(sqlite, **changes)
    workbench.write_window()
    workbench.truth.update(dict.fromkeys(workbench.truth, "1"))
    monitor.advance()
    workbench.answer(monitor, wrong=0.2)
    monitor.advance()
    round_, revision = of_round(workbench, monitor)
    assert (round_.state, revision) == ("closed", None)
    assert monitor.advance().problems == [], "and says it once"
    assert "its labels do not tell its recall[8]: recall[8] is undefined: none of the" in str(round_.problem)
    assert re.search(r"What they do tell: accuracy \d+\.\d % \[.*\]; a late one will be estimated", str(round_.problem))
    told = asked("status", "-c", str(workbench.write_yaml(sqlite, **changes)))
    assert "round 1 has no estimate: its labels do not tell its recall[8]" in told
    metrics = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert metrics["measure/accuracy_provisional_low"] < metrics["measure/accuracy_provisional"] < 1
    assert not {"recall_8/estimate", "measure/accuracy"} & metrics.keys(), "a late label may still change it"
    kept = monitor.registry.download(round_.run_id, "measures.json", tmp_path / "got").read_text()
    assert [each["quantity"] for each in json.loads(kept)] == ["accuracy", "F1[no]"]

    with monitor.store.write() as connection:
        right = next(each.input_id for each in queue.answers(connection, round_.id) if each.prediction == each.truth)
        task = connection.scalar(sa.select(tasks.c.id).where(tasks.c.input_id == right))
        queue.record(connection, [Label(task, "ann", "8", monitor.clock())], monitor.clock())
    assert monitor.advance().problems == []
    _, revision = of_round(workbench, monitor)
    assert revision.estimate.quantity.name == "recall[8]"
    for run_id in (round_.run_id, round_.timeline_run_id):
        metrics = monitor.registry._client.get_run(run_id).data.metrics
        several = {key for key in metrics if len(monitor.registry.metric_history(run_id, key)) > 1}
        assert not several
        assert metrics["measure/accuracy"] < metrics["measure/accuracy_provisional"]
        assert metrics["measure/accuracy"] == revision.further[0].estimate.value


def broken(truth: Any, prediction: Any, scores: Any, weight: Any) -> float:
    """A measure that its owner got wrong."""
    raise ZeroDivisionError


def test_a_measure_that_fails_stops_no_other(workbench: Any, sqlite: str, caplog: pytest.LogCaptureFixture) -> None:
    own = {"function": {"path": "tests.stages.test_measures:broken", "name": "gain"}}
    none = {"precision": {"class": "none"}}
    monitor = one_round(
        workbench, sqlite, **{**CHANGES, "classes": None, "measures": [own, none, "accuracy"], "main": None}
    )
    round_, revision = of_round(workbench, monitor)
    assert revision.estimate.quantity.name == "accuracy"
    why = {each.quantity.name: each.why for each in revision.further}
    assert "fails on 100 labelled inputs: ZeroDivisionError" in why["gain"]
    assert "there is no class 'none'" in why["precision[none]"]
    assert "measure/gain" not in monitor.registry._client.get_run(round_.timeline_run_id).data.metrics


@pytest.mark.parametrize("main", ["accuracy", "recall[3]"])
def test_a_round_whose_answers_are_all_of_one_class_closes(main: str, workbench: Any, sqlite: str) -> None:
    """An AUC is undefined there, of the round and of every part of it: it says so, and stops nothing else."""
    measures = ["accuracy", {"recall": {"class": "3"}}, {"auc": {"class": "8"}}, {"average_precision": {"class": "8"}}]
    changes = {**CHANGES, "measures": measures, "main": main, "slices": ["prediction"]}
    monitor = workbench.monitor(sqlite, **changes)
    workbench.write_window()
    monitor.advance()
    workbench.truth = dict.fromkeys(workbench.truth, "3")
    workbench.answer(monitor)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1
    _, revision = of_round(workbench, monitor)
    why = {each.quantity.name: each.why for each in revision.further}
    assert "all of one side" in why["AUC[8]"]
    assert "is undefined" in why["average precision[8]"]


@pytest.mark.parametrize(("letter", "main"), [("a", "accuracy"), ("漢", "recall")])
def test_a_round_of_classes_with_long_names_closes(letter: str, main: str, workbench: Any, sqlite: str) -> None:
    """No metric, tag or picture is called by more than MLflow or a disk takes, and none by another's name."""
    ok, bad = (letter * 119 + end for end in "xy")
    names = [ok, bad] * 100
    changes = {
        **CHANGES,
        "classes": [ok, bad],
        "scoring": {"by": "logged"},
        "columns": {"id": "input_id", "timestamp": "at", "prediction": "said"},
        "measures": ["accuracy", {"recall": {"class": ok}}, "confusion_matrix"],
        "slices": ["prediction"],
        "main": main,
    }
    monitor = workbench.monitor(sqlite, **changes)
    workbench.write_window(said=names)
    workbench.truth = dict(zip(workbench.truth, [*names[:150], *[bad] * 50], strict=True))
    assert monitor.advance().problems == []
    workbench.answer(monitor)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1
    round_, revision = of_round(workbench, monitor)
    cells = [each for each in revision.further if each.quantity.name.startswith("confusion[")]
    keys = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert len(cells) == 4
    for each in cells:
        assert keys[f"measure/{each.quantity.key}"] == each.estimate.value
    assert len({each.quantity.key for each in cells}) == 4
    key = revision.estimate.quantity.key
    assert f"{key}.png" in monitor.registry.files(round_.timeline_run_id)
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert f"opmon.{key}.interval" in tags
