"""Truth that arrives by itself labels what was drawn, whenever it comes; a source in trouble costs only itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mlflow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import skl2onnx
from sklearn.linear_model import LogisticRegression

from opmon.adjudication import TRUTH
from opmon.checks.monitor import check_monitor
from opmon.config import Settings
from opmon.replies import Replies
from opmon.store import queue, revisions, rounds, sliced, truths, verdicts

SOURCE = {"truth": {"source": {"path": "truth"}, "id": "order", "label": "outcome", "at": "known_at"}}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write_truth(workbench: Any, known: Mapping[str, object], at: datetime = NOON) -> Path:
    """Another file of truths, whole at once."""
    folder = workbench.folder / "truth"
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir())):03}.parquet"
    table = {"order": list(known), "outcome": list(known.values()), "known_at": [at] * len(known)}
    pq.write_table(pa.table(table), path.with_suffix(".tmp"))
    return path.with_suffix(".tmp").rename(path)


def said(monitor: Any, number: int = 1) -> dict[str, tuple[str, ...]]:
    """Of each task of a round that somebody has spoken of, what truth said, one word after another."""
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, monitor.settings.name, number)
        tasks = queue.answers(connection, round_.id)
    return {
        task.input_id: tuple(label.truth for label in task.labels if label.annotator == TRUTH)
        for task in tasks
        if task.labels
    }


def round_of(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def drawn(monitor: Any, number: int = 1) -> list[str]:
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, monitor.settings.name, number)
        return [task.input_id for task in queue.answers(connection, round_.id)]


def some(truth: Mapping[str, str], ids: Iterable[str]) -> dict[str, str]:
    return {key: truth[key] for key in ids}


def test_truth_that_comes_after_the_draw_closes_the_round_and_nobody_is_asked(workbench, database, clock) -> None:
    (workbench.folder / "truth").mkdir()
    workbench.write_window()
    monitor = workbench.monitor(database, clock, **SOURCE)
    assert monitor.advance().problems == []
    asked = drawn(monitor)
    write_truth(workbench, some(workbench.truth, asked[:5]))
    monitor.advance()
    assert said(monitor) == {key: (workbench.truth[key],) for key in asked[:5]}
    with monitor.store.read() as connection:
        assert {task.input_id for task in queue.open_tasks(connection)} == set(asked[5:])
    assert round_of(monitor).state == "labelling"
    write_truth(workbench, workbench.truth)
    monitor.advance()
    assert round_of(monitor).state == "closed"
    assert said(monitor) == {key: (workbench.truth[key],) for key in asked}


def test_truth_that_came_before_the_draw_is_known_when_it_is_drawn(workbench, database, clock) -> None:
    path = workbench.write_window()
    later = path.rename(workbench.folder / "later.parquet")
    for start in range(0, 200, 20):
        write_truth(workbench, some(workbench.truth, [f"w1-{k}" for k in range(start, start + 20)]))
    monitor = workbench.monitor(database, clock, **SOURCE)
    assert monitor.advance().problems == []
    for path in (workbench.folder / "truth").iterdir():
        path.unlink()
    later.rename(workbench.folder / "production" / "window-001.parquet")
    assert monitor.advance().problems == []
    assert round_of(monitor).state == "closed"
    assert set(said(monitor)) == set(drawn(monitor))


def test_ids_are_joined_in_whatever_type_they_come(workbench, sqlite, clock) -> None:
    """Text in the log, and fractions in the table of truths, as pandas writes a column with gaps."""
    keys = [20_260_301_000_000 + k for k in range(200)]
    workbench.write_window(input_id=list(map(str, keys)))
    known = {float(key): workbench.truth[f"w{workbench.windows}-{k}"] for k, key in enumerate(keys)}
    write_truth(workbench, known)
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    assert monitor.advance().problems == []
    assert round_of(monitor).state == "closed"
    assert said(monitor) == {f"{key:.0f}": (each,) for key, each in known.items() if f"{key:.0f}" in drawn(monitor)}


def test_a_correction_is_a_new_label_and_what_is_older_or_known_already_is_none(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    one, two, three = drawn(monitor)[:3]
    write_truth(workbench, {one: "1", two: "1", three: "1"})
    monitor.advance()
    write_truth(workbench, {one: "2", three: "1"}, NOON + timedelta(hours=1))
    write_truth(workbench, {one: "3", two: "1"}, NOON - timedelta(hours=1))
    monitor.advance()
    assert said(monitor) == {one: ("1", "2"), two: ("1",), three: ("1",)}


def test_of_truths_of_one_moment_the_one_that_is_read_last_counts(workbench, sqlite, clock) -> None:
    """As in a table of days, where the evening's file corrects the morning's. Read again, they change nothing."""
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    one, two = drawn(monitor)[:2]
    for truth in ("1", "2"):
        write_truth(workbench, {one: truth, two: "3"})
        monitor.advance()
    assert said(monitor) == {one: ("1", "2"), two: ("3",)}
    with monitor.store.write() as connection:
        for truth in ("1", "2", "1", "2"):  # as after a kill, or on another machine
            known = {one: [truths.Known(truth, NOON)], two: [truths.Known("3", NOON)]}
            assert truths.record_named(connection, workbench.name, known, clock()) == []
    monitor.folder = workbench.folder / "elsewhere"
    assert monitor.advance().problems == []
    assert said(monitor) == {one: ("1", "2"), two: ("3",)}


def test_truth_wins_over_annotators_and_counts_in_no_agreement(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    workbench.answer(monitor, wrong=1.0, limit=1)
    with monitor.store.read() as connection:
        (task,) = [task for task in queue.answers(connection, round_of(monitor).id) if task.labels]
    write_truth(workbench, some(workbench.truth, [task.input_id]))
    monitor.advance()
    with monitor.store.read() as connection:
        (task,) = [task for task in queue.answers(connection, round_of(monitor).id) if task.labels]
    assert task.truth == workbench.truth[task.input_id]
    assert task.agreement == 0.0
    assert set(task.annotators) == {"ann", TRUTH}


def test_what_can_be_no_truth_is_counted_and_told(workbench, sqlite, clock, caplog) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    asked = drawn(monitor)
    write_truth(workbench, {asked[0]: "cat", asked[1]: None, asked[2]: " 3.0 ", "x" * 501: "1", "nobody": "cat"})
    assert monitor.advance().problems == []
    assert said(monitor) == {asked[2]: ("3",)}
    with monitor.store.read() as connection:
        read = truths.last_read(connection, [workbench.name])[workbench.name]
    assert read.refused == {"'cat' is none of the classes": 2, "no id, or one that can be none": 1}
    assert read.taken == 1
    assert "'cat' is none of the classes" in caplog.text


def test_truths_in_other_words_than_the_models_are_told_and_taken_once_classes_says_what_they_mean(
    workbench, sqlite, clock
) -> None:
    workbench.write_window()
    write_truth(workbench, {key: f"c{truth}" for key, truth in workbench.truth.items()})
    settings = Settings.from_mapping(workbench.configuration(sqlite, **SOURCE), workbench.folder)
    (found,) = (each for each in check_monitor(settings, workbench.name) if each.about.endswith("truth"))
    assert (found.level, found.needs_change) == ("problem", True)
    assert "'c0' is none of the classes" in found.message
    assert "the classes are '0', '1', '2'" in found.message
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    assert monitor.advance().problems == []
    with monitor.store.read() as connection:
        read = truths.last_read(connection, [workbench.name])[workbench.name]
    assert (read.taken, sum(read.refused.values())) == (0, len(workbench.truth))
    assert said(monitor) == {}

    named = {"classes": {f"{number}": [f"c{number}"] for number in range(10)}}
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **named)
    assert monitor.advance().problems == []
    assert set(said(monitor)) == set(drawn(monitor))


@pytest.mark.parametrize("later", [0, 1])
def test_a_foreign_word_that_came_before_the_classes_were_known_takes_no_truth_away(
    workbench, sqlite, clock, later
) -> None:
    workbench.write_window()
    write_truth(workbench, workbench.truth)
    write_truth(workbench, dict.fromkeys(workbench.truth, "o2,??"), NOON + timedelta(hours=later))
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    assert monitor.advance().problems == []
    assert said(monitor) == {key: (str(workbench.truth[key]),) for key in drawn(monitor)}
    with monitor.store.read() as connection:
        read = truths.last_read(connection, [workbench.name])[workbench.name]
    assert read.refused["'o2,??' is none of the classes"] == len(workbench.truth)
    assert read.taken == len(workbench.truth)


def test_a_foreign_word_that_comes_with_a_truth_of_a_drawn_input_takes_it_not_away(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    write_truth(workbench, workbench.truth)
    write_truth(workbench, dict.fromkeys(workbench.truth, "o2"), NOON + timedelta(hours=1))
    assert monitor.advance().problems == []
    assert said(monitor) == {key: (workbench.truth[key],) for key in drawn(monitor)}


def logistic(workbench: Any, classes: int) -> str:
    """Register a model of the first digits as another version of ``grown``, behind its alias; gives its address."""
    mine = workbench.targets < classes
    model = LogisticRegression(max_iter=50).fit(workbench.images[mine], workbench.targets[mine])
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    options = {"zipmap": False}
    graph = skl2onnx.to_onnx(model, initial_types=[("pixels", kind)], options=options, target_opset=17)
    workbench.register(graph, "grown")
    client = mlflow.MlflowClient(workbench.tracking_uri)
    client.set_registered_model_alias("grown", "best", workbench.model.rpartition("/")[2])
    return "models:/grown@best"


def test_truths_of_a_class_that_only_the_next_version_has_are_its_rounds(workbench, sqlite, clock) -> None:
    """Its first inputs and their truths are there in one cycle, which reads the truths before it opens a round."""
    workbench.write_window()
    write_truth(workbench, workbench.truth)
    monitor = workbench.monitor(sqlite, clock, **SOURCE, model=logistic(workbench, 9))
    assert monitor.advance().problems == []
    first = {key: truth for key, truth in some(workbench.truth, drawn(monitor)).items() if truth != "9"}
    assert said(monitor) == {key: (truth,) for key, truth in first.items()}

    logistic(workbench, 10)
    before = set(workbench.truth)
    workbench.write_window()
    new = some(workbench.truth, set(workbench.truth) - before)
    write_truth(workbench, new)
    write_truth(workbench, dict.fromkeys(new, "o2"), NOON + timedelta(hours=1))
    assert monitor.advance().problems == []
    assert round_of(monitor, 2).classes == list("0123456789")
    assert said(monitor, 2) == {key: (new[key],) for key in drawn(monitor, 2)}
    assert "9" in {new[key] for key in drawn(monitor, 2)}
    assert said(monitor) == {key: (truth,) for key, truth in first.items()}, "in its round it is no class"
    with monitor.store.read() as connection:
        read = truths.last_read(connection, [workbench.name])[workbench.name]
    assert read.refused == {"'o2' is none of the classes": len(new)}
    assert read.taken == len(workbench.truth)


def test_a_source_of_truth_in_trouble_stops_no_round_and_is_tried_again(workbench, sqlite, clock) -> None:
    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    cycle = monitor.advance()
    assert "there is no file or folder" in str(cycle.problems[0])
    assert round_of(monitor).state == "labelling"
    write_truth(workbench, workbench.truth)
    assert monitor.advance().problems == []
    assert round_of(monitor).state == "closed"


def test_a_truth_without_its_column_names_those_there_are(workbench, sqlite, clock) -> None:
    write_truth(workbench, {"a": "1"})
    monitor = workbench.monitor(sqlite, clock, truth=SOURCE["truth"] | {"label": "result"})
    (problem,) = monitor.advance().problems
    assert "result" in str(problem)
    assert "order, outcome, known_at" in str(problem)


def test_another_machine_reads_for_itself_and_says_nothing_twice(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE)
    monitor.advance()
    one = drawn(monitor)[0]
    write_truth(workbench, {one: "1"})
    write_truth(workbench, {one: "2"}, NOON + timedelta(hours=1))
    monitor.advance()
    monitor.folder = workbench.folder / "elsewhere"
    assert monitor.advance().problems == []
    assert said(monitor) == {one: ("2",)}


def test_a_column_of_the_log_is_truth_and_no_annotator_sees_it(workbench, database, clock) -> None:
    outcomes = [None if k % 10 == 0 else 0 for k in range(200)]
    workbench.write_window(outcome=outcomes)
    monitor = workbench.monitor(database, clock, truth={"column": "outcome"})
    assert monitor.advance().problems == []
    known = {key for key in drawn(monitor) if int(key.partition("-")[2]) % 10}
    assert said(monitor) == dict.fromkeys(known, ("0",))
    with monitor.store.read() as connection:
        (*open_tasks,) = queue.open_tasks(connection)
    assert {task.input_id for task in open_tasks} == set(drawn(monitor)) - known
    assert not any("outcome" in task.payload for task in open_tasks)


def test_numbers_are_truths_of_a_regression(tmp_path: Path) -> None:
    from opmon.truth.reading import COMMA, Vocabulary

    said = ["1.5", None, "", "nan", "many", "inf", "3,5", "1.234,5", "-1,234", "1_000"]
    named, refused = Vocabulary(Replies("regression")).named(pa.array(said))
    assert named.to_pylist() == [1.5, *[None] * 9]
    assert refused == {
        "'many' is no finite number": 1,
        "'inf' is no finite number": 1,
        "'1_000' is no finite number": 1,
        COMMA: 3,
    }


def test_rows_that_say_another_truth_of_the_same_time_are_told(tmp_path: Path) -> None:
    from opmon.sources.files import Files
    from opmon.truth.reading import CONTRADICTED, Vocabulary, read_truths

    rows = [("a", "1", 0), ("a", "0", 0), ("b", "1", 0), ("b", "1", 0), ("c", "1", 1), ("c", "0", 0), ("a", "1", 0)]
    at = [NOON + timedelta(hours=hour) for _, _, hour in rows]
    table = {"id": [row[0] for row in rows], "label": [row[1] for row in rows], "at": at}
    pq.write_table(pa.table(table), tmp_path / "truths.parquet")
    source, vocabulary = Files(str(tmp_path)), Vocabulary(Replies(classes=("0", "1")))
    found = read_truths(source, source.pending({}), ("id", "label", "at"), vocabulary, NOON)
    assert dict(zip(found.ids.to_pylist(), found.truths.labels.to_pylist(), strict=True)) == dict.fromkeys("abc", "1")
    assert found.refused == {CONTRADICTED: 1}


def test_no_annotator_is_called_truth(workbench, sqlite, clock) -> None:
    from opmon.labels.rows import ImportedLabel
    from opmon.store.matching import match

    workbench.write_window()
    monitor = workbench.monitor(sqlite, clock)
    monitor.advance()
    line = ImportedLabel(1, "1", monitor=workbench.name, input_id=drawn(monitor)[0], annotator=TRUTH)
    with monitor.store.read() as connection:
        (problem,) = match(connection, [line]).problems
    assert "name its annotator otherwise" in problem


def test_annotators_are_asked_once_the_wait_for_truth_is_over(workbench, sqlite, clock) -> None:
    provider = {"labels": {"wait_for_truth": "7d", "max_wait": "2d", "provider": {"path": "labels"}}}
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **provider)
    monitor.advance()
    folder = workbench.folder / "labels" / workbench.name
    ends = datetime(2026, 3, 1, 1, 3, 19, tzinfo=UTC)
    assert (round_of(monitor).asks_at, round_of(monitor).deadline_at) == (
        ends + timedelta(days=7),
        ends + timedelta(days=9),
    )
    assert not folder.exists()
    with monitor.store.read() as connection:
        assert queue.open_tasks(connection, at=clock()) == []
        assert len(queue.open_tasks(connection)) == len(drawn(monitor))
    write_truth(workbench, some(workbench.truth, drawn(monitor)[1:]))
    clock.pass_(days=7)
    monitor.advance()
    (path,) = folder.glob("*.csv")
    assert drawn(monitor)[0] in path.read_text()
    assert len(path.read_text().splitlines()) == 2


def test_a_monitor_whose_truth_only_arrives_by_itself_asks_nobody(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    quiet = {"labels": {"annotators": "none"}, "sampler": {"type": "srs", "budget": 40}}
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **quiet)
    monitor.advance()
    clock.pass_(days=6)
    with monitor.store.read() as connection:
        assert queue.open_tasks(connection, at=clock() + timedelta(days=9999)) == []
    write_truth(workbench, some(workbench.truth, drawn(monitor)[:20]))
    monitor.advance()
    assert round_of(monitor).state == "labelling"
    assert latest(monitor).estimate.notes[-1].startswith("truths are still to come")
    clock.pass_(days=2)
    monitor.advance()
    assert round_of(monitor).state == "closed"
    final = latest(monitor).estimate
    assert final.response == pytest.approx(0.5)
    assert any(note.startswith("20 of 40 truths have not come, and the round waits no longer") for note in final.notes)


def test_where_nobody_is_asked_all_is_drawn_at_once_and_classes_that_no_truth_says_are_told(
    workbench, sqlite, clock
) -> None:
    workbench.write_window()
    some_classes = {key: truth for key, truth in workbench.truth.items() if truth in "01234"}
    write_truth(workbench, some_classes)
    labels = {"annotators": "none", "max_wait": "1d"}
    sampler = {"type": "adaptive", "budget": 80}
    monitor = workbench.monitor(sqlite, clock, **SOURCE, labels=labels, sampler=sampler)
    assert monitor.advance().problems == []
    assert len(drawn(monitor)) == 80
    clock.pass_(days=3651)
    assert monitor.advance().problems == []
    estimate = latest(monitor).estimate
    assert estimate.n == 80
    (note,) = (note for note in estimate.notes if note.startswith("no truth that has come says"))
    assert note.endswith("this is the accuracy on those")


def latest(monitor: Any, number: int = 1) -> revisions.Revision:
    with monitor.store.read() as connection:
        found = revisions.latest_estimate(connection, round_of(monitor, number).id)
    assert found is not None
    return found


RULES = {
    "sampler": {"type": "srs", "budget": 40},
    "rules": [
        {"type": "accuracy_below", "threshold": 0.999, "name": "below"},
        {"type": "accuracy_level", "threshold": 0.5, "name": "level"},
        {"type": "accuracy_mean", "threshold": 0.5, "rounds": 2, "name": "mean"},
        {"type": "accuracy_drop", "drop": 0.05, "rounds": 1, "name": "drop"},
        {"type": "completeness", "name": "complete"},
    ],
}


def test_where_every_input_has_its_truth_the_round_is_a_census(workbench, database, clock) -> None:
    """Three rounds, so that every rule and the rolling estimate meet intervals without a width."""
    monitor = workbench.monitor(database, clock, **SOURCE, **RULES)
    for number in (1, 2, 3):
        workbench.write_window()
        write_truth(workbench, workbench.truth)
        assert monitor.advance().problems == []
        found = latest(monitor, number).estimate
        assert round_of(monitor, number).state == "closed"
        assert (found.method, found.n, found.half_width, found.provisional) == ("census", 200, 0, False)
        assert found.value == pytest.approx(workbench.true_accuracy(monitor, number))
        assert "taken to be right" in found.notes[0]
    with monitor.store.read() as connection:
        said = verdicts.latest_verdicts(connection, round_of(monitor, 3).id)
    assert {each.rule: "failed" in each.message for each in said} == dict.fromkeys(
        ("below", "level", "mean", "drop", "complete"), False
    )
    assert {each.rule: each.state for each in said}["below"] == "alarm"
    page = monitor.registry.download(round_of(monitor, 3).run_id, "round.html", workbench.folder / "pages").read_text()
    assert "census" in page
    assert list((workbench.folder / ".opmon" / "truth").rglob("*.npz")) == []


def test_rules_and_slices_of_a_census_go_by_all_inputs(workbench, sqlite, clock) -> None:
    """40 draws are no evidence of an accuracy thirteen points below the line; 400 inputs that are known are."""
    changes = {
        "round": {"min_inputs": 400, "max_inputs": 400, "max_age": "3650d"},
        "sampler": {"type": "srs", "budget": 40},
        "rules": [
            {"type": "accuracy_level", "threshold": 0.85, "name": "level"},
            {"type": "accuracy_mean", "threshold": 0.85, "rounds": 2, "name": "mean"},
            {"type": "accuracy_slices", "by": "shop", "threshold": 0.5, "name": "shops"},
        ],
        "slices": ["shop"],
        "measures": ["accuracy", {"recall": {"average": "macro"}}],
    }
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **changes)
    workbench.write_window(400, shop=["far", "near", "near", "near"] * 100)
    for key in [key for at, key in enumerate(workbench.truth) if at % 4 == 0]:
        workbench.truth[key] = str((int(workbench.truth[key]) + 1) % 10)
    write_truth(workbench, workbench.truth)
    assert monitor.advance().problems == []
    found = latest(monitor)
    assert found.estimate.counted
    with monitor.store.read() as connection:
        verdict = {each.rule: each for each in verdicts.latest_verdicts(connection, round_of(monitor).id)}
    assert {verdict[name].state for name in ("level", "shops")} == {"alarm"}
    assert "failed" not in verdict["mean"].message
    assert "counted over all 400 inputs" in verdict["level"].message
    with monitor.store.read() as connection:
        far, near = (each for each in sliced.of(connection, [found.key])[found.key])
    assert [(each.name, each.answers) for each in (far, near)] == [("shop far", 100), ("shop near", 300)]
    assert all(each.low == each.value == each.high for each in (far, near))
    assert (far.value + 3 * near.value) / 4 == pytest.approx(workbench.true_accuracy(monitor, 1))
    assert 0.7 < far.worse_at_least < far.worse_by == pytest.approx(near.value - far.value)


def test_every_measure_of_a_census_is_that_of_all_inputs(workbench, sqlite, clock) -> None:
    """Those of scores are of the drawn inputs, whose scores alone are kept."""
    changes = {
        "sampler": {"type": "srs", "budget": 40},
        "measures": ["accuracy", {"recall": {"average": "macro"}}, "log_loss"],
        "main": "recall",
        "rules": [],
    }
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **changes)
    workbench.write_window()
    write_truth(workbench, workbench.truth)
    assert monitor.advance().problems == []
    found = latest(monitor)
    assert (found.estimate.method, found.estimate.n, found.estimate.half_width) == ("census", 200, 0)
    accuracy, log_loss = (each.estimate for each in found.further)
    assert accuracy.value == pytest.approx(workbench.true_accuracy(monitor, 1))
    assert (accuracy.method, accuracy.n, log_loss.n) == ("census", 200, 40)
    assert 0 < found.estimate.value != accuracy.value


def test_the_last_truths_make_a_census_of_a_closed_round(workbench, sqlite, clock) -> None:
    workbench.write_window()
    write_truth(workbench, {})
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **RULES)
    monitor.advance()
    write_truth(workbench, some(workbench.truth, drawn(monitor)))
    monitor.advance()
    assert (round_of(monitor).state, latest(monitor).estimate.method) == ("closed", "srs/mid-p")
    rest = [key for key in workbench.truth if key not in drawn(monitor)]
    write_truth(workbench, some(workbench.truth, rest[1:]))
    monitor.advance()
    assert latest(monitor).revision == 0
    write_truth(workbench, some(workbench.truth, rest[:1]))
    monitor.advance()
    assert (round_of(monitor).state, latest(monitor).estimate.method) == ("closed", "census")
    assert latest(monitor).estimate.value == pytest.approx(workbench.true_accuracy(monitor, 1))
    right = workbench.truth[drawn(monitor)[0]]
    write_truth(workbench, {drawn(monitor)[0]: "1" if right == "0" else "0"}, NOON + timedelta(days=1))
    monitor.advance()
    assert latest(monitor).estimate.method == "census"
    assert latest(monitor).estimate.value == pytest.approx(workbench.true_accuracy(monitor, 1) - 1 / 200)


def test_a_column_of_the_log_without_a_gap_is_a_census(workbench, sqlite, clock) -> None:
    workbench.write_window(outcome=[0] * 200)
    workbench.write_window(outcome=[None] + [0] * 199)
    monitor = workbench.monitor(sqlite, clock, truth={"column": "outcome"}, labels={"annotators": "none"})
    assert monitor.advance().problems == []
    assert latest(monitor).estimate.method == "census"
    assert latest(monitor).estimate.value < 0.3
    assert latest(monitor, 2).estimate.method != "census"


def test_truths_of_which_some_come_sooner_are_weighed_by_the_lags_of_earlier_rounds(workbench, sqlite, clock) -> None:
    """Zeros and half of the other digits are known after an hour, the others after ten."""
    quiet = {
        "labels": {"annotators": "none", "max_wait": "90d"},
        "sampler": {"type": "srs", "budget": 150},
        "rules": [],
    }
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **quiet)

    def known(window: int, hours: float) -> None:
        now = datetime(2026, 3, 1, window, tzinfo=UTC) + timedelta(hours=hours)
        for lag in (1, 10):
            if lag <= hours:
                soon = {
                    key: truth
                    for key, truth in workbench.truth.items()
                    if key.startswith(f"w{window}-") and (truth == "0" or key[-1] in "13579") == (lag == 1)
                }
                write_truth(workbench, soon, now - timedelta(hours=hours - lag))
        write_truth(workbench, {"nobody": "1"}, now)

    for window in (1, 2, 3):
        workbench.write_window()
        known(window, 20)
    clock.pass_(days=2)
    monitor.advance()
    workbench.write_window()
    write_truth(workbench, {})
    known(4, 5)
    clock.pass_(days=2)
    assert monitor.advance().problems == []
    found = latest(monitor, 4).estimate
    assert (found.method, found.provisional) == ("srs/lags", True)
    assert "as before" in found.notes[-1]
    assert "(450 lags)" in found.notes[-1]
    assert found.low <= workbench.true_accuracy(monitor, 4) <= found.high


def test_views_tell_what_is_awaited_how_soon_truths_came_and_what_was_read(workbench, sqlite, clock) -> None:
    from opmon.queries.monitors import monitor_view

    workbench.write_window()
    write_truth(workbench, {})
    late = {"labels": {"wait_for_truth": "7d", "max_open": 1}}
    monitor = workbench.monitor(sqlite, clock, **SOURCE, **late)
    monitor.advance()
    asked = drawn(monitor)
    write_truth(workbench, some(workbench.truth, asked[:4]), datetime(2026, 3, 1, 11, tzinfo=UTC))
    monitor.advance()
    with monitor.store.read() as connection:
        before = monitor_view(connection, monitor.settings.watch, clock(), shown=1)
        after = monitor_view(connection, monitor.settings.watch, clock() + timedelta(days=8), shown=1)
    (round_,) = before.newest
    assert (round_.waits_for, before.queue.open, before.queue.due_at) == ("truth", 0, None)
    assert [need.kind for need in before.needs] == []
    assert (round_.truth.arrived, round_.truth.median_hours) == (4, pytest.approx(10, abs=0.1))
    assert (before.truth.taken, before.truth.known_until) == (4, datetime(2026, 3, 1, 11, tzinfo=UTC))
    assert (after.newest[0].waits_for, after.queue.open) == ("labels", len(asked) - 4)
    workbench.write_window()
    assert monitor.advance().opened == 1
    write_truth(workbench, workbench.truth)
    monitor.advance()
    import mlflow

    metrics = mlflow.MlflowClient(workbench.tracking_uri).get_run(round_of(monitor).run_id).data.metrics
    assert metrics["truth/arrived"] == len(asked)
    assert metrics["truth/lag_median_hours"] == pytest.approx(11, abs=0.1)


def test_a_table_of_all_truths_is_imported_as_far_as_it_was_asked_for(workbench, sqlite, clock) -> None:
    from click.testing import CliRunner

    from opmon.cli import group

    workbench.write_window()
    config = workbench.write_yaml(sqlite)
    monitor = workbench.monitor(sqlite, clock)
    monitor.advance()
    table = workbench.folder / "truth.csv"
    table.write_text("input_id,label\n" + "".join(f"{key},{truth}\n" for key, truth in workbench.truth.items()))
    arguments = ["labels", "import", "-c", str(config), "-m", workbench.name, str(table)]
    refused = CliRunner().invoke(group, arguments)
    assert refused.exit_code != 0
    done = CliRunner().invoke(group, [*arguments, "--only-asked"])
    assert done.exit_code == 0, done.output
    asked = len(drawn(monitor))
    assert f"{asked} labels recorded" in done.output
    assert f"{200 - asked} inputs that no label was asked of" in done.output
