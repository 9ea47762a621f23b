"""Rules and events inside the cycle: evidence that is carried on, one event a drop, advice, silence, retraining."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.errors import InputError, OpmonError
from opmon.quantities import ACCURACY
from opmon.queries.timeline import timeline
from opmon.store import outbox, queue, rounds, schema, verdicts
from opmon.types import Label, Verdict

LEVEL = {"type": "accuracy_level", "threshold": 0.85, "name": "level"}
EVEN = {"type": "ssrs", "budget": 40}
"""Weights near 1, with which recovery takes few labels."""


def live(workbench: Any, monitor: Any, count: int, wrong: float = 0.0, **more: Any) -> None:
    """``count`` rounds from inputs to verdicts, with so many labels turned wrong."""
    for _ in range(count):
        workbench.write_window()
        monitor.advance()
        workbench.answer(monitor, wrong=wrong, **more)
        monitor.advance()


def only_round(monitor: Any, name: str, number: int) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, name, number)


def verdicts_of(monitor: Any, name: str, number: int) -> list[Verdict]:
    with monitor.store.read() as connection:
        return verdicts.latest_verdicts(connection, rounds.get(connection, name, number).id)


def events_of(monitor: Any, name: str) -> list[dict[str, Any]]:
    """Oldest first."""
    with monitor.store.read() as connection:
        return sorted(outbox.listing(connection, name), key=lambda event: event["body"]["round"])


def test_evidence_is_carried_from_round_to_round_until_it_alarms_once(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, rules=[LEVEL])
    live(workbench, monitor, 2)
    good = verdicts_of(monitor, workbench.name, 2)[0]
    assert (good.state, good.details["rounds_judged"]) == ("ok", 2)
    live(workbench, monitor, 4, wrong=0.9)
    seen = [verdicts_of(monitor, workbench.name, number)[0] for number in (3, 4, 5, 6)]
    assert [verdict.details["rounds_judged"] for verdict in seen] == [3, 4, 5, 6]
    assert seen[-1].state == "alarm"
    events = events_of(monitor, workbench.name)
    assert [event["type"] for event in events] == ["opmon.alarm"]
    body = events[0]["body"]
    assert body["evidence"]["evidence"] >= 1 == body["evidence"]["needed"]
    assert body["run_uri"].startswith("runs:/")
    assert body["failures_uri"].endswith("failures/failures.parquet")
    assert "for ever" in body["message"]


def test_recovery_needs_evidence_and_makes_one_event(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, rules=[LEVEL | {"threshold": 0.8}], sampler=EVEN)
    live(workbench, monitor, 2, wrong=0.95)
    assert verdicts_of(monitor, workbench.name, 2)[0].state == "alarm"
    live(workbench, monitor, 4)
    assert verdicts_of(monitor, workbench.name, 6)[0].state == "ok"
    assert [event["type"] for event in events_of(monitor, workbench.name)] == ["opmon.alarm", "opmon.recovered"]


def test_an_event_names_the_other_alarms_that_stand(workbench: Any, sqlite: str) -> None:
    """The high line is still missed when the low one is kept again."""
    rules = [
        {"type": "accuracy_below", "threshold": 0.5, "name": "low"},
        {"type": "accuracy_below", "threshold": 0.95, "name": "high"},
    ]
    monitor = workbench.monitor(sqlite, rules=rules, sampler=EVEN)
    live(workbench, monitor, 1, wrong=0.95)
    live(workbench, monitor, 1, wrong=0.3)
    live(workbench, monitor, 1)
    told = [
        (event["type"], event["body"]["rule"], event["body"]["alarms"]) for event in events_of(monitor, workbench.name)
    ]
    assert sorted(told[:2]) == [("opmon.alarm", "high", ["low"]), ("opmon.alarm", "low", ["high"])]
    assert told[2] == ("opmon.recovered", "low", ["high"])
    assert all(alarms == [] for _, rule, alarms in told[3:] if rule == "high")


def test_a_late_label_replaces_what_its_round_said_and_later_rounds_are_said_anew(
    workbench: Any, database: str
) -> None:
    monitor = workbench.monitor(database, rules=[LEVEL])
    live(workbench, monitor, 1, skip=0.4)
    live(workbench, monitor, 1)
    first, second = (verdicts_of(monitor, workbench.name, number)[0] for number in (1, 2))
    with monitor.store.write() as connection:
        task = connection.execute(
            sa.select(schema.tasks).join(schema.labels).where(schema.labels.c.truth.is_(None))
        ).first()
        late = Label(task.id, "ben", workbench.truth[task.input_id], datetime(2026, 3, 3, tzinfo=UTC))
        queue.record(connection, [late], monitor.clock())
    monitor.advance()
    again, after = (verdicts_of(monitor, workbench.name, number)[0] for number in (1, 2))
    assert again.details["round"]["growth"]["labels"] > first.details["round"]["growth"]["labels"]
    assert after.details["evidence"] != second.details["evidence"]
    assert after.details["round"] == second.details["round"]
    live(workbench, monitor, 1)
    assert verdicts_of(monitor, workbench.name, 3)[0].details["rounds_judged"] == 3
    assert events_of(monitor, workbench.name) == []


def test_mlflow_says_the_same_as_the_rules_when_a_late_label_turns_one(
    workbench: Any, sqlite: str, tmp_path: Path
) -> None:
    """The newest round is told again, in the cycle in which the label for an older one comes."""
    rule = {"type": "accuracy_below", "threshold": 0.8, "certainty": "estimate", "patience": 2, "name": "twice"}
    monitor = workbench.monitor(sqlite, rules=[rule])

    def told() -> tuple[str, str, str]:
        """What the version's tag, the last round's file and the timeline's description say."""
        round_ = only_round(monitor, workbench.name, 3)
        tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
        path = monitor.registry.download(round_.run_id, "verdicts.json", tmp_path / uuid.uuid4().hex)
        note = monitor.registry._client.get_run(round_.timeline_run_id).data.tags["mlflow.note.content"]
        return tags["opmon.status"], json.loads(path.read_text())[0]["state"], note.split(":")[0]

    live(workbench, monitor, 2)
    live(workbench, monitor, 1, wrong=0.9)
    assert told() == ("healthy", "ok", "## Healthy")
    before = only_round(monitor, workbench.name, 3)
    with monitor.store.write() as connection:
        query = sa.select(schema.tasks.c.id, schema.tasks.c.input_id).join(schema.rounds)
        second = connection.execute(query.where(schema.rounds.c.number == 2)).all()
        wrong = {task.id: str((int(workbench.truth[task.input_id]) + 1) % 10) for task in second}
        late = [Label(task, "ann", truth, monitor.clock()) for task, truth in wrong.items()]
        queue.record(connection, late, monitor.clock())
    assert monitor.has_work()
    assert monitor.advance().problems == []
    assert [verdict.state for verdict in verdicts_of(monitor, workbench.name, 3)] == ["alarm"]
    assert told() == ("degraded", "alarm", "## Degraded")
    after = only_round(monitor, workbench.name, 3)
    assert (after.state, after.closed_at) == ("closed", before.closed_at)
    assert not monitor.has_work()


def test_a_new_version_begins_a_baseline_of_its_own(workbench: Any, sqlite: str, tmp_path: Any) -> None:
    rule = {"type": "accuracy_drop", "drop": 0.1, "rounds": 2, "name": "drop"}
    columns = {"id": "input_id", "timestamp": "at", "model_version": "served_by"}
    monitor = workbench.monitor(sqlite, rules=[rule], columns=columns)
    for version, count in (("1", 3), ("2", 1)):
        for _ in range(count):
            workbench.write_window(served_by=[version] * 200)
            workbench.register_again()
            monitor.advance()
            workbench.answer(monitor)
            monitor.advance()
    third, fourth = (verdicts_of(monitor, workbench.name, number)[0] for number in (3, 4))
    assert third.state == "ok"
    assert third.details["baseline"]["rounds"] == 2
    assert (fourth.state, len(fourth.details["taken"])) == ("unknown", 1)


def test_advice_is_kept_and_told_to_nobody(workbench: Any, sqlite: str) -> None:
    rules = [LEVEL | {"mode": "advise"}]
    monitor = workbench.monitor(sqlite, rules=rules)
    live(workbench, monitor, 4, wrong=0.95)
    events = events_of(monitor, workbench.name)
    assert [(event["type"], event["body"]["state"]) for event in events] == [("opmon.advice", "alarm")]
    assert events[0]["deliveries"] == []
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert events[0]["id"] not in tags.get("opmon.retrain", "")


def test_advice_is_no_alarm_on_the_timeline(workbench: Any, database: str) -> None:
    below = {"type": "accuracy_below", "threshold": 0.9, "certainty": "estimate"}
    monitor = workbench.monitor(database, rules=[below | {"name": "trial", "mode": "advise"}])
    live(workbench, monitor, 1, wrong=0.95)
    monitor = workbench.monitor(
        database, rules=[below | {"name": "trial", "mode": "advise"}, below | {"name": "floor"}]
    )
    live(workbench, monitor, 1, wrong=0.95)
    assert [verdict.state for verdict in verdicts_of(monitor, workbench.name, 1)] == ["alarm"]
    with monitor.store.read() as connection:
        points = timeline(connection, workbench.name, ACCURACY, rounds=5, within=None)
        assert [point.alarm for point in points] == [False, True]
        connection.execute(sa.update(schema.verdicts).values(details={}))
        assert verdicts.alarming_rounds(connection, workbench.name, 1) == {1, 2}, "of old verdicts it is not known"


def test_an_action_waits_while_it_is_silent_and_is_spared_what_is_over(workbench: Any, sqlite: str, clock: Any) -> None:
    actions = [{"type": "registry_tag", "silence": ["sat,sun,mon,tue,wed,thu,fri"], "name": "quiet"}]
    rules = [LEVEL | {"threshold": 0.8}]
    monitor = workbench.monitor(sqlite, clock, rules=rules, actions=actions, sampler=EVEN)
    live(workbench, monitor, 2, wrong=0.95)
    alarm = events_of(monitor, workbench.name)[0]
    assert [d["state"] for d in alarm["deliveries"]] == ["pending"]
    assert alarm["deliveries"][0]["next_at"] == clock() + timedelta(days=7)
    live(workbench, monitor, 4)
    alarm, recovered = events_of(monitor, workbench.name)
    assert [d["state"] for d in alarm["deliveries"]] == ["withdrawn"]
    assert recovered["deliveries"] == []


def test_within_the_cooldown_a_second_alarm_waits(workbench: Any, database: str, clock: Any) -> None:
    rules = [{"type": "accuracy_below", "threshold": 0.8, "certainty": "estimate", "name": "floor", "cooldown": "30d"}]
    monitor = workbench.monitor(database, clock, rules=rules)
    live(workbench, monitor, 1, wrong=0.7)
    live(workbench, monitor, 1)
    clock.pass_(days=1)
    live(workbench, monitor, 1, wrong=0.7)
    first, _, second = events_of(monitor, workbench.name)
    assert [d["state"] for d in first["deliveries"]] == ["delivered"]
    assert second["deliveries"][0]["next_at"] == first["created_at"] + timedelta(days=30)


def test_a_rule_that_fails_stops_nothing_else(workbench: Any, sqlite: str) -> None:
    monitor = workbench.monitor(sqlite, rules=[LEVEL, {**LEVEL, "name": "second"}])
    object.__setattr__(monitor.settings.rules[0].plugin, "recovery", None)  # a fault that no configuration can have
    live(workbench, monitor, 4, wrong=0.95)
    broken, working = verdicts_of(monitor, workbench.name, 4)
    assert (broken.state, working.state) == ("unknown", "alarm")
    assert "the rule failed" in broken.message


def test_a_challenger_answers_the_same_draws(workbench: Any, sqlite: str) -> None:
    workbench.register_again()
    rule = {"type": "accuracy_behind", "rival": "models:/digits/2", "name": "challenger"}
    monitor = workbench.monitor(sqlite, rules=[rule])
    live(workbench, monitor, 1)
    verdict = verdicts_of(monitor, workbench.name, 1)[0]
    assert (verdict.state, verdict.details["disagreements"]) == ("ok", 0), "version 2 is the same model"
    found = monitor.compare("models:/digits/1", "models:/digits/2")
    assert (found.winner, found.difference, found.disagreements) == (None, 0.0, 0)
    for of in (monitor.compare, monitor.compare_measures):
        with pytest.raises(InputError, match="both are models:/digits/2: name two versions that differ"):
            of("models:/digits/2", "models:/digits/2")


def test_slices_completeness_drift_and_robustness_are_judged(workbench: Any, sqlite: str) -> None:
    rules = [
        {"type": "accuracy_slices", "threshold": 0.7},
        {"type": "completeness"},
        {"type": "drift_level"},
        {"type": "robustness_level", "threshold": 0.5},
        {"type": "robustness_level", "threshold": 0.5, "query": "fog", "name": "fog"},
    ]
    monitor = workbench.monitor(sqlite, rules=rules)
    tags = {"opmon.robustness": "0.4", "opmon.robustness.fog": "0.6"}
    monitor.registry.tag_version(monitor.registry.resolve(workbench.model), tags)
    live(workbench, monitor, 1)
    found = {verdict.rule: verdict for verdict in verdicts_of(monitor, workbench.name, 1)}
    states = {name: verdict.state for name, verdict in found.items()}
    assert states == {
        "accuracy-slices": "ok",
        "completeness": "ok",
        "drift-level": "unknown",
        "robustness-level": "alarm",
        "fog": "ok",
    }
    assert "'fog'" in found["fog"].message
    assert len(found["accuracy-slices"].details["of"]) == 10
    timeline = only_round(monitor, workbench.name, 1).timeline_run_id
    monitor.registry.log_metrics(
        timeline, {"robustness/aggregate": 0.9, "robustness/query/fog": 0.3}, 1, monitor.clock()
    )
    live(workbench, monitor, 1)
    now = {verdict.rule: verdict.state for verdict in verdicts_of(monitor, workbench.name, 2)}
    assert (now["robustness-level"], now["fog"]) == ("ok", "alarm"), "the timeline is newer than the tag"


def test_rounds_are_judged_in_their_order_and_one_drop_is_one_alarm(workbench: Any, database: str) -> None:
    """Labelled in the order 1, 4, 2, 5, 3, wrong from round 3 on: no verdict before its turn, and one alarm."""
    rules = [LEVEL, {"type": "accuracy_below", "threshold": 0.85, "certainty": "estimate", "name": "plain"}]
    monitor = workbench.monitor(database, rules=rules, sampler=EVEN)
    for _ in range(5):
        workbench.write_window()
    monitor.advance()
    for number in (1, 4, 2, 5):
        workbench.answer(monitor, wrong=0.95 if number > 2 else 0.0, only=number)
        monitor.advance()
    assert verdicts_of(monitor, workbench.name, 5) == []
    assert events_of(monitor, workbench.name) == []
    waiting = only_round(monitor, workbench.name, 4)
    assert (waiting.state, waiting.reported) == ("estimated", 0), "its estimate is told meanwhile"
    assert "after round 3, for which labels are awaited; a run after 20" in (waiting.problem or "")
    assert not monitor.has_work()
    workbench.answer(monitor, wrong=0.95, only=3)
    monitor.advance()
    for place in (0, 1):
        found = [verdicts_of(monitor, workbench.name, number)[place] for number in (1, 2, 3, 4, 5)]
        assert [verdict.state for verdict in found][:2] == ["ok", "ok"]
        assert found[-1].state == "alarm"
    assert sorted((event["rule"], event["type"]) for event in events_of(monitor, workbench.name)) == [
        ("level", "opmon.alarm"),
        ("plain", "opmon.alarm"),
    ]
    closed = only_round(monitor, workbench.name, 4)
    assert (closed.state, closed.problem) == ("closed", None)


def test_a_round_waits_for_those_before_it_no_longer_than_their_deadline(
    workbench: Any, sqlite: str, clock: Any
) -> None:
    monitor = workbench.monitor(sqlite, clock, rules=[LEVEL], labels={"max_wait": "2d"})
    workbench.write_window()
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, only=2)
    monitor.advance()
    assert only_round(monitor, workbench.name, 2).state == "estimated"
    clock.pass_(days=3)
    monitor.advance()
    assert only_round(monitor, workbench.name, 2).state == "closed"
    assert [verdict.state for verdict in verdicts_of(monitor, workbench.name, 2)] == ["ok"]


def test_a_rule_changed_during_an_alarm_is_told_as_changed(workbench: Any, sqlite: str) -> None:
    """75 % is an alarm; ``threshold`` is raised, and the next round is at 100 %: nobody hears of a recovery."""
    rule = {"type": "accuracy_below", "threshold": 0.85, "certainty": "estimate", "name": "plain"}
    actions = [{"type": "registry_alias"}]
    monitor = workbench.monitor(sqlite, rules=[rule], actions=actions, sampler=EVEN)
    live(workbench, monitor, 1, wrong=0.9)
    version = monitor.registry.resolve(workbench.model)
    assert monitor.registry.resolve("models:/digits@degraded").version == version.version
    edited = workbench.monitor(sqlite, rules=[rule | {"threshold": 0.86}], actions=actions, sampler=EVEN)
    live(workbench, edited, 1)
    events = events_of(edited, workbench.name)
    assert [event["type"] for event in events] == ["opmon.alarm", "opmon.changed"]
    assert events[1]["body"]["state"] == "changed"
    assert "threshold 0.85 → 0.86" in events[1]["body"]["message"]
    with pytest.raises(OpmonError):
        edited.registry.resolve("models:/digits@degraded")


def test_the_alarm_of_a_rule_that_was_taken_out_is_closed(workbench: Any, sqlite: str) -> None:
    rule = {"type": "accuracy_below", "threshold": 0.85, "certainty": "estimate", "name": "plain"}
    live(workbench, workbench.monitor(sqlite, rules=[rule], sampler=EVEN), 1, wrong=0.9)
    monitor = workbench.monitor(sqlite, rules=[], sampler=EVEN)
    live(workbench, monitor, 2)
    events = events_of(monitor, workbench.name)
    assert [(event["type"], event["body"]["round"]) for event in events] == [("opmon.alarm", 1), ("opmon.changed", 2)]
    assert [only_round(monitor, workbench.name, number).state for number in (2, 3)] == ["closed", "closed"]


def test_nothing_is_computed_inside_a_transaction(workbench: Any, sqlite: str) -> None:
    """While a rule judges, the sqlite can be written to by others."""
    monitor = workbench.monitor(sqlite, rules=[LEVEL])
    judged = []

    def judge(case: Any) -> Verdict:
        with monitor.store.write() as connection:
            connection.execute(schema.rounds.update().values(skew=0.125))
        judged.append(case.number)
        return Verdict("level", "ok", "fine")

    object.__setattr__(monitor.settings.rules[0].plugin, "judge", judge)
    live(workbench, monitor, 1)
    assert judged == [1]
    assert only_round(monitor, workbench.name, 1).state == "closed"


def test_inputs_a_millisecond_apart_hang_nothing(workbench: Any, sqlite: str) -> None:
    rules = [{"type": "accuracy_below", "threshold": 0.5, "patience": 3}]
    monitor = workbench.monitor(sqlite, rules=rules)
    live(workbench, monitor, 1)
    with monitor.store.write() as connection:
        first = rounds.get(connection, workbench.name, 1)
    workbench.write_window()
    monitor.advance()
    with monitor.store.write() as connection:
        second = rounds.get(connection, workbench.name, 2)
        rounds.update(connection, second.id, ends_at=first.ends_at + timedelta(milliseconds=1))
    workbench.answer(monitor)
    monitor.advance()
    verdict = verdicts_of(monitor, workbench.name, 2)[0]
    assert verdict.details["rounds_in_a_year"] == 31_557_600_000
    assert verdict.details["false_alarm_in_a_year"] == pytest.approx(1)


def test_completeness_also_judges_a_round_that_ends_without_an_estimate(
    workbench: Any, sqlite: str, clock: Any
) -> None:
    rules = [{"type": "completeness", "name": "complete"}, LEVEL]
    monitor = workbench.monitor(sqlite, clock, rules=rules, labels={"max_wait": "2d"})
    workbench.write_window()
    monitor.advance()
    clock.pass_(days=3)
    monitor.advance()
    assert [(v.rule, v.state) for v in verdicts_of(monitor, workbench.name, 1)] == [("complete", "alarm")]
    event = events_of(monitor, workbench.name)[0]
    assert event["body"]["estimate"] is None
    assert "only 0 % of the tasks were answered" in event["body"]["message"]
    workbench.answer(monitor)
    monitor.advance()
    assert {v.rule for v in verdicts_of(monitor, workbench.name, 1)} == {"complete", "level"}
    assert len(events_of(monitor, workbench.name)) == 1


def test_compare_finds_the_better_of_two_real_versions(workbench: Any, tmp_path: Any) -> None:
    """Version 2 was trained on a fraction of what version 1 saw; 240 labels asked for version 1 tell them apart."""
    world = workbench.sibling(tmp_path / "world")
    train_version(world.tracking_uri, images=40)
    world.model = "models:/digits/1"
    monitor = world.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "ssrs", "budget": 60})
    live(world, monitor, 4)
    found = monitor.compare("models:/digits/1", "models:/digits/2")
    assert found.winner == "first"
    assert found.high < 0
    assert (found.labels, found.known_before) == (240, 0)


def test_compare_goes_by_the_main_measure_and_by_slices(workbench: Any, tmp_path: Any) -> None:
    world = workbench.sibling(tmp_path / "world")
    train_version(world.tracking_uri, images=40)
    world.model = "models:/digits/1"
    changes = {
        "classes": [str(digit) for digit in range(10)],
        "measures": [{"f1": {"average": "macro"}}, "log_loss", {"recall": {"class": "8"}}],
        "main": "f1",
        "slices": ["prediction"],
        "rules": [],
        "sampler": {"type": "srs", "budget": 100},
    }
    monitor = world.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **changes)
    live(world, monitor, 2)
    (main,) = monitor.compare_measures("models:/digits/1", "models:/digits/2")
    assert main.quantity.name == "macro F1"
    assert (main.winner, main.labels, main.rounds) == ("first", 200, 2)
    assert main.high < 0
    told = main.words("v1", "v2")
    assert "v1 is better; that holds for one look" in told
    by_loss, recall = monitor.compare_measures("models:/digits/1", "models:/digits/2", ["log_loss", "recall[8]"])
    assert by_loss.winner == "first"
    assert by_loss.low > 0
    assert recall.first > recall.second
    assert len(by_loss.slices) >= 5
    differ = [each for each in by_loss.slices if each.differs]
    assert (f"In none of {len(by_loss.slices)} slices" in by_loss.words("v1", "v2")) == (not differ)
    assert all(each.low > 0 for each in differ)


def test_compare_says_which_rounds_a_version_may_have_learned_from(workbench: Any, tmp_path: Any) -> None:
    world = workbench.sibling(tmp_path / "world")
    world.model = "models:/digits/1"
    monitor = world.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 40})
    live(world, monitor, 2)
    train_version(world.tracking_uri, images=900)
    pair = "models:/digits/1", "models:/digits/2"
    with pytest.raises(InputError, match=r"no round since 20.* when the later version was registered"):
        monitor.compare(*pair, fresh=True)
    live(world, monitor, 1)
    everything, fresh = monitor.compare(*pair), monitor.compare(*pair, fresh=True)
    assert (everything.rounds, everything.known_before) == (3, 2)
    assert (fresh.rounds, fresh.known_before, fresh.labels) == (1, 0, 40)
    assert "2 of the rounds were opened before" in everything.words("v1", "v2")


def train_version(uri: str, images: int) -> None:
    """Another version of the registered model, fitted on a few digits."""
    import mlflow
    import skl2onnx
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=200).fit(x[:images], y[:images])
    kind = skl2onnx.common.data_types.FloatTensorType([None, 64])
    graph = skl2onnx.to_onnx(model, initial_types=[("pixels", kind)], options={"zipmap": False}, target_opset=17)
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("training")
    with mlflow.start_run():
        info = mlflow.onnx.log_model(graph, name="model", pip_requirements=["onnxruntime"])
    mlflow.register_model(info.model_uri, "digits")
