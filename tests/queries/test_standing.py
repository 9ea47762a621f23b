"""The one word that is said of a model version."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opmon.config import MonitorSettings, Settings
from opmon.queries.standing import standing_of
from opmon.store import rounds, verdicts
from opmon.store.engine import Store, open_store
from opmon.store.plans import RoundPlan
from opmon.types import Slice, Verdict

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FLOOR = {"type": "accuracy_level", "threshold": 0.9, "name": "floor"}
DRIFT = {"type": "drift_level", "name": "drift"}
ROBUST = {"type": "robustness_level", "threshold": 0.5, "name": "robust"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'opmon.db'}")


def settings(*rules: dict[str, Any]) -> MonitorSettings:
    monitor = {"model": "models:/m/1", "source": {"path": "p"}, "rules": list(rules)}
    return Settings.from_mapping({"monitors": {"m": monitor}}).monitor("m")


def said(store: Store, *words: dict[str, str | Verdict]) -> None:
    """A round for each, with what the rules say of it."""
    with store.write() as connection:
        for number, verdict_of in enumerate(words, start=1):
            piece = Slice("a", str(number), str(number + 1), 10, NOW)
            version = {"model_name": "m", "model_version": "1", "only_version": None, "plan": RoundPlan()}
            rounds.add(connection, "m", [piece], received=10, opened_at=NOW, **version)  # type: ignore[arg-type]
            found = [
                each if isinstance(each, Verdict) else Verdict(rule, each, "so it is")  # type: ignore[arg-type]
                for rule, each in verdict_of.items()
            ]
            verdicts.add_verdicts(connection, rounds.get(connection, "m", number).id, 0, found)


def standing(store: Store, *rules: dict[str, Any]) -> str:
    with store.read() as connection:
        return standing_of(connection, "m", ("m", "1"), settings(*rules).watch.acting_rules).status


def test_a_monitor_that_no_rule_watches_is_not_called_healthy(store: Store) -> None:
    said(store, {"floor": "ok"})
    assert standing(store) == "unwatched"
    assert standing(store, FLOOR | {"mode": "advise"}) == "unwatched"
    with store.read() as connection:
        assert standing_of(connection, "m", ("m", "1"), ()).why == "no rule watches it"


def test_rules_that_only_advise_have_no_say(store: Store) -> None:
    said(store, {"floor": "ok", "drift": "unknown", "other": "alarm"})
    assert standing(store, FLOOR, DRIFT) == "healthy"
    assert standing(store, FLOOR, FLOOR | {"name": "other", "mode": "advise"}) == "healthy"
    assert standing(store, FLOOR, FLOOR | {"name": "other"}) == "degraded"


def test_rules_that_know_nothing_yet_make_it_unknown_only_where_none_knows_anything(store: Store) -> None:
    said(store, {"floor": "unknown", "robust": "unknown"}, {"floor": "ok", "robust": "unknown"})
    assert standing(store, FLOOR, ROBUST) == "healthy"
    assert standing(store, ROBUST) == "unknown"


def test_an_alarm_stands_through_rounds_of_which_nothing_is_known(store: Store) -> None:
    said(store, {"floor": "alarm"}, {"floor": "unknown"})
    assert standing(store, FLOOR) == "degraded"


def test_the_alarm_of_a_rule_before_it_was_changed_is_over(store: Store) -> None:
    old = Verdict("floor", "alarm", "low", details={"rule": {"threshold": 0.9}})
    new = Verdict("floor", "unknown", "taking the baseline", details={"rule": {"threshold": 0.8}})
    said(store, {"floor": old}, {"floor": new})
    assert standing(store, FLOOR) == "unknown"
