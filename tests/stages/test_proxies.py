"""What guesses where the model is wrong assists the estimate, is fixed before the labels, and is no label."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opmon.errors import ConfigError
from opmon.estimators.proxies import Proxy
from opmon.store import draws, queue, revisions, rounds

SRS = {"sampler": {"type": "srs", "budget": 60}}


def round_of(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def proxy_of(monitor: Any, number: int = 1) -> Proxy | None:
    return Proxy.of_draw(draws.unpack_draw(round_of(monitor, number).draw or b""))


def estimate_of(monitor: Any, number: int = 1) -> Any:
    with monitor.store.read() as connection:
        found = revisions.latest_estimate(connection, round_of(monitor, number).id)
    assert found is not None
    return found.estimate


def asked(monitor: Any, number: int = 1) -> list[Any]:
    with monitor.store.read() as connection:
        return queue.answers(connection, round_of(monitor, number).id)


def second_model(workbench: Any, seed: int = 0) -> list[str | None]:
    """What another model answers to the next window: right on 95 % of the inputs, silent on a few."""
    rng = np.random.default_rng([0, workbench.windows + 1])
    truth = workbench.targets[rng.integers(0, len(workbench.targets), 200)]
    other = np.random.default_rng(seed)
    said = np.where(other.random(200) < 0.95, truth, (truth + 1) % 10)
    return [None if k % 50 == 0 else str(each) for k, each in enumerate(said.tolist())]


@pytest.mark.parametrize("sampler", ["srs", "adaptive"])
def test_a_column_with_anothers_answer_assists_every_wave(workbench, sqlite, clock, sampler) -> None:
    workbench.write_window(second=second_model(workbench))
    monitor = workbench.monitor(
        sqlite, clock, estimate={"proxy": {"column": "second"}}, sampler={"type": sampler, "budget": 60}
    )
    for _ in range(4):
        assert monitor.advance().problems == []
        proxy = proxy_of(monitor)
        assert proxy is not None
        tasks = {task.position: task for task in asked(monitor)}
        positions = draws.unpack_draw(round_of(monitor).draw).positions
        for value, position in zip(proxy.value, positions.tolist(), strict=True):
            said = second_model_of(workbench, tasks[position].input_id)
            if said is not None:
                assert value == float(said != tasks[position].prediction)
        assert all("second" not in task.payload for task in tasks.values())  # it would anchor annotators
        workbench.answer(monitor)
    assert round_of(monitor).state == "closed"
    found = estimate_of(monitor)
    assert found.method == f"{sampler}/model-assisted"
    assert any("that was fixed before the labels assists" in note for note in found.notes)
    assert found.low <= workbench.true_accuracy(monitor, 1) <= found.high
    assert round_of(monitor).plan.proxy == {"by": "column", "column": "second", "says": "answer"}


def second_model_of(workbench: Any, input_id: str) -> str | None:
    import pyarrow.parquet as pq

    table = pq.read_table(workbench.folder / "production" / "window-001.parquet")
    return dict(zip(table["input_id"].to_pylist(), table["second"].to_pylist(), strict=True))[input_id]


@pytest.mark.parametrize(("says", "flip"), [("wrong", False), ("right", True)])
def test_a_column_with_a_probability(workbench, sqlite, clock, says, flip) -> None:
    doubt = np.random.default_rng(1).random(200)
    workbench.write_window(doubt=doubt)
    monitor = workbench.monitor(sqlite, clock, estimate={"proxy": {"column": "doubt", "says": says}}, **SRS)
    assert monitor.advance().problems == []
    proxy = proxy_of(monitor)
    assert proxy is not None
    known = {task.position: task.input_id for task in asked(monitor)}
    expected = [
        doubt[int(known[p].split("-")[1])] for p in draws.unpack_draw(round_of(monitor).draw).positions.tolist()
    ]
    assert proxy.value == pytest.approx(1 - np.array(expected) if flip else expected, abs=1e-6)
    assert proxy.frame_mean[0] == pytest.approx(1 - doubt.mean() if flip else doubt.mean(), abs=1e-6)
    assert proxy.mean_variance == 0


def test_a_column_that_says_nothing_leaves_the_estimate_to_the_labels(workbench, sqlite, clock) -> None:
    workbench.write_window(second=[None] * 200)
    monitor = workbench.monitor(sqlite, clock, estimate={"proxy": {"column": "second"}}, **SRS)
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    found = estimate_of(monitor)
    assert found.method == "srs/mid-p"
    assert any("the proxy that was to assist is not known" in note for note in found.notes)


def test_the_failure_rate_is_learned_from_rounds_before(workbench, sqlite, clock) -> None:
    monitor = workbench.monitor(sqlite, clock, estimate={"proxy": "learned"}, **SRS)
    for number in (1, 2, 3):
        workbench.write_window()
        assert monitor.advance().problems == []
        workbench.answer(monitor, wrong=0.3)
        monitor.advance()
        assert (proxy_of(monitor, number) is not None) == (number > 1)
    assert estimate_of(monitor, 3).method == "srs/model-assisted"


JUDGE = """
import json, os, sys
guide, asked = json.loads(os.environ["OPMON_GUIDE"]), 0
for line in sys.stdin:
    question = json.loads(line)
    assert "model prediction" not in question["input"] and len(question["input"]["pixels"]) == 64
    with open({log!r}, "a") as log:
        log.write(question["key"] + "\\n")
    asked += 1
    if asked > {dies_after}:
        sys.exit("out of answers")
    answer = sorted(guide["classes"])[int(sum(question["input"]["pixels"])) % 10]
    print(json.dumps({{"key": question["key"], "answer": answer}}), flush=True)
"""


def command(workbench: Any, dies_after: int = 10**9) -> dict[str, object]:
    script = workbench.folder / "judge.py"
    script.write_text(JUDGE.format(log=str(workbench.folder / "asked.log"), dies_after=dies_after))
    return {"type": "command", "command": [sys.executable, str(script)]}


def paid(workbench: Any) -> list[str]:
    return (workbench.folder / "asked.log").read_text().split()


def test_a_judge_is_asked_about_a_random_sample_and_the_drawn_inputs(workbench, sqlite, clock) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock, judge={**command(workbench), "at_most": 130}, **SRS)
    assert monitor.advance().problems == []
    proxy = proxy_of(monitor)
    assert proxy is not None
    assert 70 <= len(set(paid(workbench))) == len(paid(workbench)) <= 130
    assert proxy.mean_variance > 0
    workbench.answer(monitor)
    monitor.advance()
    assert estimate_of(monitor).method == "srs/model-assisted"
    assert {label.annotator for task in asked(monitor) for label in task.labels} == {"ann"}  # no label of the judge


def test_a_judge_that_dies_is_asked_about_the_rest_and_nothing_is_paid_twice(workbench, sqlite, clock) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock, judge=command(workbench, dies_after=90), **SRS)
    (problem,) = monitor.advance().problems
    assert "exit code 1" in str(problem)
    assert "out of answers" in str(problem)
    assert "the round waits for the judge until 13:00" in str(problem)
    assert round_of(monitor).state == "scored"
    clock.pass_(minutes=30)
    for _ in range(2):
        monitor.advance()
    assert round_of(monitor).state == "labelling"
    proxy = proxy_of(monitor)
    assert proxy is not None
    assert proxy.mean_variance == 0  # all 200 inputs were asked about
    answered = [key for number, key in enumerate(paid(workbench), 1) if number not in (91, 182)]
    assert len(set(answered)) == len(answered)


def test_a_round_goes_on_without_a_judge_that_does_not_come_back(workbench, sqlite, clock) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock, judge=command(workbench, dies_after=0), **SRS)
    assert len(monitor.advance().problems) == 1
    clock.pass_(minutes=59)
    assert len(monitor.advance().problems) == 1
    clock.pass_(minutes=2)
    assert monitor.advance().problems == []
    workbench.answer(monitor)
    monitor.advance()
    assert estimate_of(monitor).method == "srs/mid-p"


def test_a_line_cut_in_two_by_a_kill_is_asked_again(workbench, sqlite, clock) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock, judge=command(workbench, dies_after=90), **SRS)
    monitor.advance()
    (kept,) = Path(workbench.folder).rglob("judged-*.jsonl")
    kept.write_bytes(kept.read_bytes()[:-20])
    for _ in range(3):
        monitor.advance()
    assert round_of(monitor).state == "labelling"
    lines = [json.loads(line)["key"] for line in kept.read_bytes().split(b"\n") if line.endswith(b"}")]
    assert len(lines) == len(set(lines)) == 200


@pytest.mark.parametrize("sampler", ["srs", "adaptive"])
def test_answers_of_a_judge_are_labels_where_the_user_says_so(workbench, sqlite, clock, sampler) -> None:
    workbench.write_window()
    judge = {**command(workbench), "as_labels": True}
    monitor = workbench.monitor(sqlite, clock, judge=judge, sampler={"type": sampler, "budget": 40})
    assert monitor.advance().problems == []
    found = estimate_of(monitor)
    assert round_of(monitor).state == "closed"
    assert {label.annotator for task in asked(monitor) for label in task.labels} == {"judge command"}
    assert any("40 of 40 labels are answers of the judge command, which nobody has checked" in n for n in found.notes)
    assert found.value < 0.5  # of the agreement with a judge that guesses
    assert len(paid(workbench)) == 40


def test_a_larger_registered_model_judges_the_whole_frame(workbench, sqlite, clock, tmp_path) -> None:
    own = workbench.sibling(tmp_path / "own")
    version = own.new_version()
    own.write_window()
    judge = {"type": "model", "model": f"models:/digits/{version}"}
    monitor = own.monitor(sqlite, clock, judge=judge, model="models:/digits/1", **SRS)
    assert monitor.advance().problems == []
    proxy = proxy_of(monitor)
    assert proxy is not None
    assert proxy.mean_variance == 0
    assert ((proxy.value >= 0) & (proxy.value <= 1)).all()
    assert len(np.unique(proxy.value)) > 10  # it says how sure it is
    own.answer(monitor)
    monitor.advance()
    assert estimate_of(monitor).method == "srs/model-assisted"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimate": {"proxy": "judge"}}, "there is none: say who it is in 'judge'"),
        ({"estimate": {"proxy": "second"}}, "must be judge, learned, or a column such as {column: second"),
        ({"estimate": {"proxy": {"colum": "x"}}}, "did you mean 'column'"),
        ({"estimate": {"proxy": "learned"}, "sampler": {"type": "sups"}}, "cannot assist the sampler 'sups'"),
        ({"estimate": {"proxy": "learned"}, "judge": {"type": "command", "command": ["a"]}}, "asked for nothing"),
        ({"judge": {"type": "command", "command": ["a"], "at_most": 70}, **SRS}, "at least twice the sampler's budget"),
        ({"judge": {"type": "command"}}, "is required by judge 'command'"),
        ({"judge": {"type": "comand"}}, "did you mean 'command'"),
        ({"judge": {"type": "model", "model": "models:/digits/1"}, "model": "models:/digits/1"}, "would judge itself"),
        ({"judge": {"type": "openai", "url": "nowhere", "model": "m"}, **SRS}, "url: must be an address"),
        (
            {"judge": {"type": "command", "command": ["a"], "as_labels": True}, "labels": {"overlap": 2}},
            "one answer for a task: leave labels.overlap out",
        ),
        (
            {"judge": {"type": "command", "command": ["a"], "as_labels": True}, "estimate": {"proxy": "judge"}},
            "its answers are labels",
        ),
    ],
)
def test_keys_that_do_not_fit_are_refused_with_the_reason(workbench, sqlite, changes, message) -> None:
    with pytest.raises(ConfigError) as caught:
        workbench.monitor(sqlite, **{"sampler": {"type": "srs", "budget": 60}, **changes})
    assert message in str(caught.value)


OF_CLASSES: dict[str, Any] = {
    "classes": [str(digit) for digit in range(10)],
    "measures": [
        "accuracy",
        "log_loss",
        {"f1": {"average": "macro"}},
        {"f1": {"average": "micro"}},
        "calibration_error",
    ],
    "main": "micro F1",
    "rules": [],
}


def another_annotator(workbench: Any, wrong: float = 0.3) -> list[str | None]:
    """What somebody says who agrees with the annotator on 95 % of the next window, and says nothing of a few inputs."""
    rng = np.random.default_rng([0, workbench.windows + 1])
    truth = workbench.targets[rng.integers(0, len(workbench.targets), 200)]
    dice = np.array([zlib.crc32(f"w{workbench.windows + 1}-{k}".encode()) / 2**32 for k in range(200)])
    said = (truth + (dice < wrong) + (np.random.default_rng(1).random(200) < 0.05)) % 10
    return [None if k % 50 == 0 else str(each) for k, each in enumerate(said.tolist())]


@pytest.mark.parametrize("sampler", ["srs", "adaptive"])
def test_a_column_with_anothers_answer_assists_every_measure(workbench, sqlite, clock, sampler) -> None:
    workbench.write_window(second=another_annotator(workbench))
    changes = OF_CLASSES | {"sampler": {"type": sampler, "budget": 100}}
    monitor = workbench.monitor(sqlite, clock, estimate={"proxy": {"column": "second"}}, **changes)
    for _ in range(4):
        assert monitor.advance().problems == []
        workbench.answer(monitor, wrong=0.3)
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_of(monitor).id)
    assert revision is not None
    found = {"micro F1": revision.estimate} | {each.quantity.name: each.estimate for each in revision.further}
    said = {name: [note for note in each.notes if "column 'second'" in note] for name, each in found.items()}
    for name in ("accuracy", "micro F1", "log loss", "macro F1"):
        assert found[name].method.endswith("/model-assisted"), name
        (note,) = said[name]
        assert "a proxy (the column 'second') that was fixed before the labels assists: the interval is" in note
        assert "% narrower than by the labels alone" in note
    assert said["calibration error"] == ["a proxy (the column 'second') says nothing of the calibration error"]


def test_guesses_are_found_again_by_a_machine_that_has_no_files(workbench, sqlite, clock) -> None:
    workbench.write_window(second=another_annotator(workbench))
    changes = OF_CLASSES | {"sampler": {"type": "srs", "budget": 60}}
    monitor = workbench.monitor(sqlite, clock, estimate={"proxy": {"column": "second"}}, **changes)
    monitor.advance()
    for kept in Path(workbench.folder).rglob("guesses-0.parquet"):
        if "mlflow" not in str(kept) and "artifacts" not in str(kept):
            kept.unlink()
    workbench.answer(monitor, wrong=0.3)
    assert monitor.advance().problems == []
    assert estimate_of(monitor).method.endswith("/model-assisted")


def test_a_judges_answers_assist_further_measures(workbench, sqlite, clock) -> None:
    workbench.write_window()
    changes = {**OF_CLASSES, **SRS, "judge": {**command(workbench), "at_most": 130}}
    monitor = workbench.monitor(sqlite, clock, **changes)
    assert monitor.advance().problems == []
    workbench.answer(monitor, wrong=0.3)
    monitor.advance()
    found = estimate_of(monitor)
    assert found.method.endswith("/model-assisted")
    assert any("a proxy (the judge) that was fixed before the labels" in note for note in found.notes)
