"""A round knows of every slice how large it is, estimates each, and says which are worse than the others."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opmon.cli import group
from opmon.errors import ConfigError
from opmon.queries.rolling import rolling_whole
from opmon.stages.slices import NOT_COMPARED
from opmon.store import draws, revisions, rounds, sliced, verdicts
from opmon.types.slicing import MISSING, OTHER, Sliced

SIZE = 400
SRS = {"round": {"min_inputs": SIZE, "max_inputs": SIZE, "max_age": "3650d"}, "sampler": {"type": "srs", "budget": 160}}


def columns(seed: int = 0) -> dict[str, list[object]]:
    """Who asked: a country with gaps and odd values, a customer with an age, and a truth value."""
    rng = np.random.default_rng(seed)
    countries = np.array(["DE", "FR", "Österreich", "", "other", "XK"])
    country = countries[rng.choice(6, SIZE, p=[0.5, 0.3, 0.1, 0.05, 0.046, 0.004])].tolist()
    ages = [None if k % 20 == 0 else int(age) for k, age in enumerate(rng.integers(18, 90, SIZE))]
    customers = [{"age": age} for age in ages]
    return {"country": country, "customer": customers, "premium": [bool(k % 3) for k in range(SIZE)]}


def closed(workbench: Any, monitor: Any, number: int = 1, **answers: Any) -> rounds.Round:
    assert monitor.advance().problems == []
    workbench.answer(monitor, **answers)
    assert monitor.advance().problems == []
    return round_of(monitor, number)


def round_of(monitor: Any, number: int = 1) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def found(monitor: Any, number: int = 1) -> dict[str, Sliced]:
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, rounds.get(connection, monitor.settings.name, number).id)
        assert revision is not None
        return {each.name: each for each in sliced.of(connection, [revision.key])[revision.key]}


def test_slices_from_the_log_to_their_estimates(workbench: Any, database: str) -> None:
    log = columns()
    workbench.write_window(SIZE, **log)
    slices = ["country", "premium", {"customer.age": [0, 30, 60]}, "prediction", {"confidence": [0.1]}]
    monitor = workbench.monitor(database, slices=slices, **SRS)
    round_ = closed(workbench, monitor)
    of = found(monitor)

    counted = Counter(log["country"])
    assert {name: of[f"country {name}"].inputs for name in ("DE", "FR", "Österreich")} == {
        name: counted[name] for name in ("DE", "FR", "Österreich")
    }
    assert of["country missing"].inputs == counted[""]
    assert of['country "other"'].inputs == counted["other"], "a value of that name is not the rest"
    assert of["country other"].inputs == counted["XK"] or "country XK" in of
    ages = [customer["age"] for customer in log["customer"]]  # type: ignore[index]
    assert of["customer.age 30-60"].inputs == sum(age is not None and 30 <= age < 60 for age in ages)
    assert of["customer.age missing"].inputs == sum(age is None for age in ages)
    assert "customer.age below 0" not in of, "there is nobody in it"
    assert of["premium true"].inputs == sum(log["premium"])  # type: ignore[arg-type]
    for cut in ("country", "premium", "customer.age", "prediction", "confidence"):
        own = [each for each in of.values() if list(each.levels) == [cut]]
        assert sum(each.inputs for each in own) == SIZE
        assert sum(each.share for each in own) == pytest.approx(1)
        assert sum(each.draws for each in own) == len(draws.unpack_draw(round_.draw or b""))
    large = of["country DE"]
    assert large.value is not None
    assert large.low is not None
    assert large.high is not None
    assert large.low <= large.value <= large.high
    assert large.answers == large.draws
    assert not large.note
    assert of["country DE, premium true"].inputs < large.inputs, "crossed, because it expects draws enough"
    few = next(each for each in of.values() if 0 < each.answers < 10)
    assert few.note.startswith("too few to say")
    assert not {OTHER, MISSING} & {
        level for each in of.values() if len(each.levels) > 1 for level in each.levels.values()
    }


def test_what_is_worse_is_told_everywhere_and_late_labels_revise_it(
    workbench: Any, sqlite: str, clock: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    channel = np.where(rng.random(SIZE) < 0.3, "app", "web").tolist()
    workbench.write_window(SIZE, channel=channel)
    spoilt = [key for key, where in zip(workbench.truth, channel, strict=True) if where == "app"]
    for key in spoilt[: int(0.6 * len(spoilt))]:
        workbench.truth[key] = str((int(workbench.truth[key]) + 1) % 10)
    monitor = workbench.monitor(sqlite, clock, slices=["channel"], labels={"max_wait": "1h"}, **SRS)
    monitor.advance()
    workbench.answer(monitor, limit=120)
    clock.pass_(hours=2)
    monitor.advance()
    first = found(monitor)
    assert sum(each.answers for each in first.values()) == 120
    workbench.answer(monitor)
    monitor.advance()

    of, round_ = found(monitor), round_of(monitor)
    assert [name for name, each in of.items() if each.worse_by is not None] == ["channel app"]
    assert next(iter(of)) == "channel app", "what is worse comes first"
    app = of["channel app"]
    assert app.worse_at_least is not None
    assert app.worse_by is not None
    assert 0 < app.worse_at_least < app.worse_by
    assert app.answers + of["channel web"].answers == 160

    timeline = {
        key: monitor.registry.metric_history(round_.timeline_run_id, f"slice/channel_app/{key}")
        for key in ("accuracy", "accuracy_revised", "accuracy_revised_low", "share")
    }
    told = {key: [value for _, _, value in history] for key, history in timeline.items()}
    assert told == {
        "accuracy": [pytest.approx(first["channel app"].value)],
        "accuracy_revised": [pytest.approx(app.value)],
        "accuracy_revised_low": [pytest.approx(app.low)],
        "share": [pytest.approx(app.share)],
    }
    got = {name: monitor.registry.download(round_.run_id, name, tmp_path) for name in ("round.html", "slices.png")}
    page = got["round.html"].read_text()
    assert "channel app</bdi></b> is worse than the other inputs by" in page
    assert "2 slices as a table" in page
    assert got["slices.png"].read_bytes().startswith(b"\x89PNG")

    workbench.write_yaml(sqlite, slices=["channel"], **SRS)
    shown = CliRunner().invoke(group, ["status", "-c", str(workbench.folder / "opmon.yaml")])
    assert "slice channel app: " in shown.output, shown.output
    as_json = CliRunner().invoke(group, ["status", "--json", "-c", str(workbench.folder / "opmon.yaml")])
    slices = json.loads(as_json.output)["latest"]["slices"]
    assert slices[0]["name"] == "channel app"
    assert slices[0]["levels"] == {"channel": "app"}


def test_a_value_keeps_its_slice_and_its_room(workbench: Any, sqlite: str) -> None:
    slices = [{"shop": {"most": 3}}]
    settings = SRS | {"sampler": {"type": "srs", "budget": 20}, "rules": []}
    monitor = workbench.monitor(sqlite, slices=slices, **settings)
    for many in (["a"] * 300 + ["b"] * 97 + ["rare"] * 3, ["c"] * 200 + ["d"] * 180 + ["a"] * 20):
        workbench.write_window(SIZE, shop=many)
        assert monitor.advance().problems == []
    first, second = (round_of(monitor, number).slicing for number in (1, 2))
    assert first is not None
    assert second is not None
    assert dict(zip(first.divided[0].levels, first.divided[0].sizes, strict=True)) == {
        "a": 300, "b": 97, OTHER: 3, MISSING: 0
    }  # fmt: skip
    assert dict(zip(second.divided[0].levels, second.divided[0].sizes, strict=True)) == {
        "a": 20, "b": 0, "c": 200, OTHER: 180, MISSING: 0
    }  # fmt: skip


def test_a_column_that_is_gone_stops_nothing_and_is_told(workbench: Any, sqlite: str) -> None:
    workbench.write_window(SIZE, tags=[["x"]] * SIZE)
    monitor = workbench.monitor(sqlite, slices=["country", "tags"], **SRS)
    closed(workbench, monitor)
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_of(monitor).id)
    assert revision is not None
    for name in ("country", "tags"):
        assert f"no input has a value of {name}: is the column still there, and of one value each?" in (
            revision.estimate.notes
        )


@pytest.mark.parametrize("sampler", ["srs", "adaptive"])
def test_a_slice_gets_the_labels_it_is_promised(workbench: Any, sqlite: str, sampler: str) -> None:
    country = ["DE"] * 30 + ["FR"] * 300 + ["US"] * 70
    workbench.write_window(SIZE, country=country)
    slices = [{"country": {"values": ["DE", "XK"], "at_least": 20}}]
    settings = SRS | {"sampler": {"type": sampler, "budget": 100}}
    monitor = workbench.monitor(sqlite, slices=slices, **settings)
    monitor.advance()
    while workbench.answer(monitor):
        assert monitor.advance().problems == []
    of = found(monitor)
    assert of["country DE"].draws >= 20
    assert sum(each.draws for each in of.values() if len(each.levels) == 1) == 100
    with monitor.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_of(monitor).id)
    assert revision is not None
    assert revision.estimate.low <= workbench.true_accuracy(monitor, 1) <= revision.estimate.high


def test_a_rule_on_slices_alarms_and_names_them(workbench: Any, sqlite: str) -> None:
    rng = np.random.default_rng(1)
    channel = np.where(rng.random(SIZE) < 0.4, "app", "web").tolist()
    workbench.write_window(SIZE, channel=channel)
    for key, where in zip(list(workbench.truth), channel, strict=True):
        if where == "app":
            workbench.truth[key] = "0"
    rules = [{"type": "accuracy_slices", "threshold": 0.5, "by": "slices", "name": "channels"}]
    monitor = workbench.monitor(sqlite, slices=["channel"], rules=rules, **SRS)
    closed(workbench, monitor)
    with monitor.store.read() as connection:
        (verdict,) = verdicts.latest_verdicts(connection, round_of(monitor).id)
    assert verdict.state == "alarm", verdict.message
    assert verdict.details["slices_alarmed"] == ["channel app"]
    with pytest.raises(ConfigError, match="by: country is none of the columns in 'slices'"):
        workbench.monitor(sqlite, slices=["channel"], rules=[rules[0] | {"by": "country"}], **SRS)


def test_further_measures_are_known_of_slices(workbench: Any, sqlite: str) -> None:
    channel = np.where(np.random.default_rng(1).random(SIZE) < 0.4, "app", "web").tolist()
    workbench.write_window(SIZE, channel=channel)
    measures = ["accuracy", {"recall": {"class": "3"}}, "balanced_accuracy", "confusion_matrix"]
    monitor = workbench.monitor(sqlite, slices=["channel"], measures=measures, main="recall[3]", rules=[], **SRS)
    closed(workbench, monitor)
    app = found(monitor)["channel app"]
    assert set(app.further) == {"accuracy", "balanced accuracy"}, "a table is not one number"
    value, low, high = app.further["accuracy"]
    assert low is not None
    assert high is not None
    assert value is not None
    assert low <= value <= high
    assert app.value is None or 0 <= app.value <= 1
    timeline = round_of(monitor).timeline_run_id
    history = monitor.registry.metric_history(timeline, "slice/channel_app/recall_3")
    assert [each for _, _, each in history] == ([] if app.value is None else [pytest.approx(app.value)])


def test_the_last_rounds_together_know_their_slices_and_further_measures(
    workbench: Any, sqlite: str, clock: Any
) -> None:
    rng = np.random.default_rng(3)
    monitor = workbench.monitor(
        sqlite,
        clock,
        slices=["channel", {"shop": {"most": 2}}],
        measures=["accuracy", {"recall": {"class": "3"}}, {"f1": {"average": "macro"}}],
        rolling={"rounds": 3},
        labels={"max_wait": "1h"},
        **SRS,
    )
    for number in range(1, 4):
        channel = np.where(rng.random(SIZE) < 0.3, "app", "web").tolist()
        shops = ["a"] * 250 + ["b"] * 150 if number == 1 else ["a"] * 200 + ["c"] * 200
        workbench.write_window(SIZE, channel=channel, shop=shops)
        keys = list(workbench.truth)[-SIZE:]
        for key, where in zip(keys, channel, strict=True):
            if where == "app" and rng.random() < 0.15:
                workbench.truth[key] = str((int(workbench.truth[key]) + 1) % 10)
        assert monitor.advance().problems == []
        workbench.answer(monitor, limit=150)
        clock.pass_(hours=2)
        assert monitor.advance().problems == []

    with monitor.store.read() as connection:
        final = revisions.newest_final(connection, monitor.settings.name)
        assert final is not None
        point = rolling_whole(connection, monitor.settings.name, final, rounds=3, within=None)
    assert point is not None
    assert point.rounds == (1, 2, 3)
    over = {each.name: each for each in point.slices}
    own = [found(monitor, number)["channel app"] for number in (1, 2, 3)]
    app = over["channel app"]
    assert app.inputs == sum(each.inputs for each in own)
    assert app.answers == sum(each.answers for each in own)
    assert app.value == pytest.approx(sum(each.value * each.inputs for each in own) / app.inputs, abs=0.02)  # type: ignore[operator]
    assert app.high - app.low < 0.75 * min(each.high - each.low for each in own)  # type: ignore[operator]
    assert app.worse_by is not None, "three rounds together tell what one does not"
    assert over["shop a"].inputs == 650
    assert "shop c" not in over, "there is no room for a third"
    recall = {each.measure: each for each in point.measures}["recall[3]"]
    assert recall.estimate is not None
    assert recall.estimate.frame_size == 3 * SIZE

    timeline = round_of(monitor, 3).timeline_run_id
    for key, value in (("slice/channel_app/accuracy_rolling", app.value),
                       ("slice/channel_app/accuracy_rolling_low", app.low),
                       ("measure/recall_3_rolling", recall.estimate.value)):  # fmt: skip
        assert monitor.registry.metric_history(timeline, key)[-1][2] == pytest.approx(value)

    workbench.answer(monitor)
    assert monitor.advance().problems == [], "late labels"
    with monitor.store.read() as connection:
        later = rolling_whole(connection, monitor.settings.name, final, rounds=3, within=None)
    assert later is not None
    revised = {each.name: each for each in later.slices}["channel app"]
    assert revised.answers > app.answers
    told = monitor.registry.metric_history(timeline, "slice/channel_app/accuracy_rolling_revised")
    assert told[-1][2] == pytest.approx(revised.value)
    assert len(monitor.registry.metric_history(timeline, "slice/channel_app/accuracy_rolling")) == 2

    workbench.write_yaml(sqlite, slices=["channel", {"shop": {"most": 2}}], rolling={"rounds": 3}, **SRS)
    shown = CliRunner().invoke(group, ["status", "-c", str(workbench.folder / "opmon.yaml")])
    assert "slice channel app over these 3 rounds: " in shown.output, shown.output
    assert "over the last 3 rounds" in shown.output


def test_a_recall_is_not_compared_among_predicted_classes(workbench: Any, sqlite: str) -> None:
    """Among inputs that are said to be another class it is 0, whatever the model does."""
    workbench.write_window(SIZE, **columns())
    of_class = {"measures": ["accuracy", {"recall": {"average": "macro"}}], "main": "recall"}
    budget = {**SRS, "sampler": {"type": "srs", "budget": 300}}
    monitor = workbench.monitor(sqlite, slices=["premium", "prediction"], rolling={"rounds": 2}, **of_class, **budget)
    closed(workbench, monitor, wrong=0.3)
    of = found(monitor)
    said = [each for each in of.values() if "prediction" in each.levels]
    assert len(said) > 8
    for each in said:
        assert each.worse_at_least is None
        assert each.value is None or each.note.startswith(NOT_COMPARED)
    assert NOT_COMPARED not in of["premium true"].note
