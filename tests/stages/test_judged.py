"""Outputs whose truth is not one value: people say how good they are, and no model is run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opmon.checks.monitor import check_monitor
from opmon.cli import group
from opmon.config.files import load
from opmon.errors import ConfigError, InputError
from opmon.scales import score_of
from opmon.store import queue, revisions, rounds, verdicts
from opmon.types import Label
from tests.outputs import judged, registered, write_answers


def opmon(*arguments: str) -> str:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False, catch_exceptions=False).output


def say(workbench: Any, monitor: Any, said: dict[str, str], by: str = "ann") -> None:
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    given = [Label(task.id, by, said[task.input_id], monitor.clock()) for task in tasks]
    with monitor.store.write() as connection:
        queue.record(connection, given, monitor.clock())


def latest(workbench: Any, monitor: Any) -> Any:
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        return round_, revisions.latest_estimate(connection, round_.id)


def test_answers_pass_or_fail_by_a_table_and_the_pass_rate_is_told(workbench: Any, tmp_path: Path) -> None:
    good = write_answers(workbench.folder / "answers")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = str(workbench.write_yaml(database, **judged(workbench)))
    checked = {each.about.partition(": ")[2]: each for each in check_monitor(load(config), workbench.name)}
    assert {each.level for each in checked.values()} <= {"ok", "warning"}, checked
    assert "1 cannot be scored" in checked["trial"].message
    headings, *shown = checked["annotators"].rows
    assert headings[-1] == "answer (judged)"
    assert len(shown) == 5
    assert shown[0][0].startswith("What is")
    opmon("run", "-c", config)

    tasks = tmp_path / "tasks.csv"
    opmon("labels", "export", "-c", config, "-o", str(tasks))
    with tasks.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 80
    assert rows[0]["asks_for"] == "pass or fail (or yes, no, true, false, 1, 0)"
    assert all(row["input.prompt"].startswith("What is") for row in rows)
    assert {"input.answer", "input.usage"} <= set(rows[0])
    words = {True: ["pass", "Yes", "1", "TRUE"], False: ["fail", "no", "0", "False"]}
    for k, row in enumerate(rows):
        row["label"] = words[good[row["input_id"]]][k % 4]
    wrong = {**rows[0], "label": "0.5"}
    for name, content in (("wrong.csv", [wrong, *rows[1:]]), ("right.csv", rows)):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, rows[0])
            table.writeheader()
            table.writerows(content)
    refused = CliRunner().invoke(group, ["labels", "import", "-c", config, str(tmp_path / "wrong.csv")])
    assert refused.exit_code != 0
    assert "asks for pass or fail (or yes, no, true, false, 1, 0); got '0.5'" in str(refused.exception)
    opmon("labels", "import", "-c", config, str(tmp_path / "right.csv"), "--annotator", "ann")
    opmon("run", "-c", config)

    monitor = workbench.monitor(database, **judged(workbench))
    round_, revision = latest(workbench, monitor)
    estimate = revision.estimate
    assert estimate.quantity.name == "pass rate"
    asked = [row["input_id"] for row in rows]
    assert estimate.value == pytest.approx(sum(good[each] for each in asked) / len(asked))
    assert estimate.low <= sum(good.values()) / len(good) <= estimate.high
    assert revision.failures == sum(not good[each] for each in asked)
    told = opmon("status", "-c", config)
    assert f"pass rate {estimate.quantity.interval(estimate.value, estimate.low, estimate.high)}" in told
    assert "accuracy" not in told.replace("accuracy_level", "")
    keys = set(monitor.registry._client.get_run(round_.timeline_run_id).data.metrics)
    assert {"pass_rate/estimate", "pass_rate/low", "failures/exposed"} <= keys
    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "Failed outputs" in page
    assert "pass rate" in page
    assert "<img src=x" not in page
    assert "What is" in page, "a failure is shown with its prompt"
    with pytest.raises(InputError, match="each needs labelled rounds of its own"):  # judged outputs
        monitor.compare_measures(round_.model_uri, registered(workbench))


def test_what_init_writes_for_a_log_of_answers_is_ready(workbench: Any) -> None:
    write_answers(workbench.folder / "answers")
    config = workbench.folder / "opmon.yaml"
    where = ["--source", str(workbench.folder / "answers"), "--tracking-uri", workbench.tracking_uri]
    opmon("init", str(config), "--from", registered(workbench), *where)
    written = config.read_text()
    assert "problem: judged" in written
    assert "text: prompt" in written
    (name,) = load(config).monitors
    settings = load(config)
    findings = [*check_monitor(settings, name)]
    assert not [each for each in findings if each.level == "problem"], findings
    assert settings.monitor(name).quantity.name == "pass rate"


@pytest.mark.parametrize(("scale", "better", "worse"), [("score", "0.9", "0.25"), ("stars", "5", "2")])
def test_scores_have_a_mean_with_an_interval(
    workbench: Any, sqlite: str, tmp_path: Path, scale: str, better: str, worse: str
) -> None:
    good = write_answers(workbench.folder / "answers")
    kinds = {"accuracy_level": {}, "accuracy_mean": {"rounds": 2}, "accuracy_slices": {"by": "slices"}}
    rules = [{"type": kind, "threshold": 0.25, **more} for kind, more in kinds.items()]
    labels = {"scale": scale, "overlap": 2}
    changes = judged(workbench, labels=labels, rules=rules, slices=[{"prompt": {"most": 2}}])
    monitor = workbench.monitor(sqlite, **changes)
    assert monitor.advance().problems == []
    said = {key: better if fine else worse for key, fine in good.items()}
    say(workbench, monitor, said, "ann")
    stricter = {key: "0.5" if scale == "score" else "3" for key, fine in good.items() if fine}
    say(workbench, monitor, said | stricter, "ben")
    assert monitor.advance().problems == []
    round_, revision = latest(workbench, monitor)
    estimate = revision.estimate
    assert estimate.quantity.name == "mean score"
    with monitor.store.read() as connection:
        answers = queue.answers(connection, round_.id)
        messages = [verdict.message for verdict in verdicts.latest_verdicts(connection, round_.id)]
    assert len(messages) == 3
    assert not [each for each in messages if "25 %" in each or "accuracy" in each], "a score is no percentage"
    assert sum("0.25" in each for each in messages) >= 2
    middle = {True: (0.9 + 0.5) / 2 if scale == "score" else 0.75, False: 0.25}
    assert estimate.value == pytest.approx(sum(middle[good[each.input_id]] for each in answers) / len(answers))
    truth = sum(middle[fine] for fine in good.values()) / len(good)
    assert estimate.low <= truth <= estimate.high <= 1
    assert estimate.high - estimate.low < 0.2
    assert revision.failures == sum(not good[each.input_id] for each in answers), "scores below one half"
    assert revision.corrected.agreement is None
    assert revision.corrected.alpha is not None
    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "Low scores" in page
    assert estimate.quantity.texts(estimate.value, estimate.low, estimate.high)[0].startswith("0.")


def test_a_thumb_in_the_log_is_a_truth_that_arrives_by_itself(workbench: Any, sqlite: str) -> None:
    good = write_answers(workbench.folder / "answers")
    path = workbench.folder / "answers" / "log-0.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(json.dumps({**row, "thumb": good.get(row["id"])}) for row in rows) + "\n")
    changes = judged(workbench, truth={"column": "thumb"}, labels={"annotators": "none"}, rules=[])
    monitor = workbench.monitor(sqlite, **changes)
    assert monitor.advance().problems == []
    assert monitor.advance().problems == []
    _, revision = latest(workbench, monitor)
    assert revision.estimate.method == "census"
    assert revision.estimate.value == pytest.approx(sum(good.values()) / len(good))


def test_of_two_equally_careful_people_who_differ_the_likeliest_verdict_counts(workbench: Any, sqlite: str) -> None:
    """An output that one passes and the other fails has most likely passed, as nine in ten do: whoever spoke last."""
    good = write_answers(workbench.folder / "answers", good=0.95)
    labels = {"overlap": 2, "adjudication": "weighted"}
    monitor = workbench.monitor(sqlite, **judged(workbench, labels=labels, rules=[]))
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        asked = [task.input_id for task in queue.open_tasks(connection, workbench.name)]
    passed = [key for key in asked if good[key]]
    verdict = {key: "pass" if fine else "fail" for key, fine in good.items()}
    say(workbench, monitor, verdict | dict.fromkeys(passed[:4], "fail"), "ann")
    say(workbench, monitor, verdict | dict.fromkeys(passed[4:8], "fail"), "ben")
    assert monitor.advance().problems == []
    _, revision = latest(workbench, monitor)
    assert revision.estimate.value == pytest.approx(len(passed) / len(asked))


def test_outputs_may_be_anything(workbench: Any, sqlite: str) -> None:
    """Rankings, detections, bytes and numbers are shown as they are, and a frame keeps the beginning of each."""
    folder = workbench.folder / "answers"
    folder.mkdir()
    outputs: list[Any] = [["a", "b"], [{"label": "cat", "box": [1, 2, 3, 4]}], {"deep": {"er": [1]}}]
    rows = [{"id": f"r{k}", "query": "shoes", "answer": {"list": outputs[k % 3]}} for k in range(100)]
    texts = [json.dumps({**row, "answer": json.dumps(row["answer"])}) for row in rows]
    (folder / "log.jsonl").write_text("\n".join(texts) + "\n")
    changes = judged(workbench, columns={"id": "id", "prediction": "answer.list"}, rules=[], sampler={"budget": 20})
    monitor = workbench.monitor(sqlite, **changes)
    cycle = monitor.advance()
    assert cycle.problems == []
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    assert len(tasks) == 20, cycle
    for task in tasks:
        assert task.payload["query"] == "shoes"
        shown = task.payload["answer.list"]
        assert (json.loads(shown) if isinstance(shown, str) else shown) == outputs[int(task.input_id[1:]) % 3]
        assert "answer" not in task.payload


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scoring": {"by": "onnx"}}, "outputs that people judge are those that production logged"),
        ({"columns": {"id": "id"}}, "the column with the output that people judge"),
        ({"classes": ["a", "b"]}, "is of classes"),
        ({"unit": "days"}, "have none: leave it out"),
        ({"tolerance": 0.2}, "is right or wrong has none"),
        ({"labels": {"scale": "score", "adjudication": "weighted"}}, "of numbers and scores take mean or median"),
        ({"labels": {"scale": "score", "overlap": {"of": "failures"}}}, "a number is hardly ever hit"),
        ({"labels": {"scale": "thumbs"}}, "pass_fail"),
        ({"problem": "classification", "labels": {"scale": "stars"}}, "is of problem: judged"),
        ({"variables": ["confidence"]}, "is of classification only"),
    ],
)
def test_keys_that_do_not_fit_are_told(workbench: Any, sqlite: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        workbench.monitor(sqlite, **judged(workbench, **changes))


def test_scores_say_what_they_are() -> None:
    assert [score_of(said) for said in ("pass", "fail", "0.3", "1 of 5", "5 of 5")] == [1, 0, 0.3, 0, 1]
