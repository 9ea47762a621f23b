from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from opmon.errors import DeliveryError, NotFoundError
from opmon.store import outbox, readiness, rounds
from opmon.store.engine import Store, open_store
from opmon.store.leases import hold
from opmon.store.plans import RoundPlan
from opmon.triggers import delivery
from opmon.types import Slice

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Target:
    """An action that remembers what came and answers as it is told."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.got: list[str] = []

    def act(self, event: Mapping[str, Any]) -> None:
        self.got.append(event["id"])
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer


@pytest.fixture
def store(database: str) -> Store:
    store = open_store(database)
    with store.write() as connection:
        rounds.add(
            connection,
            "digits",
            [Slice("a", "0", "10", 10, NOW)],
            received=10,
            only_version=None,
            model_name="digits",
            model_version="1",
            plan=RoundPlan(),
            opened_at=NOW,
        )
    return store


def body(number: int = 1) -> dict[str, Any]:
    key = outbox.event_id("digits", "floor", "1", "opmon.alarm", number)
    return {"id": key, "monitor": "digits", "rule": "floor", "type": "opmon.alarm", "message": "too low"}


def add(store: Store, *actions: str) -> bool:
    with store.write() as connection:
        return outbox.add(connection, rounds.get(connection, "digits", 1).id, body(), actions, NOW)


def deliver(store: Store, actions: Mapping[str, Target], at: datetime = NOW) -> tuple[int, int]:
    with hold(store, "digits") as lease:
        return delivery.deliver(lease, "digits", actions, lambda: at)


def state_of(store: Store) -> dict[str, Any]:
    with store.read() as connection:
        return dict(outbox.listing(connection, "digits")[0]["deliveries"][0])


def test_an_event_is_delivered_once(store: Store) -> None:
    target = Target()
    assert add(store, "hook")
    assert deliver(store, {"hook": target}) == (1, 0)
    assert deliver(store, {"hook": target}) == (0, 0)
    assert target.got == [body()["id"]]


def test_the_same_event_is_not_added_twice(store: Store) -> None:
    assert add(store, "hook")
    assert not add(store, "hook")
    with store.read() as connection:
        assert len(outbox.listing(connection)) == 1


def test_a_refusal_is_tried_again_later_with_the_same_id(store: Store) -> None:
    target = Target(DeliveryError("it answered 500"), OSError("gone"))
    add(store, "hook")
    assert deliver(store, {"hook": target}) == (0, 1)
    assert deliver(store, {"hook": target}) == (0, 0), "not before its time"
    assert deliver(store, {"hook": target}, NOW + timedelta(minutes=1)) == (0, 1)
    assert deliver(store, {"hook": target}, NOW + timedelta(hours=1)) == (1, 0)
    assert set(target.got) == {body()["id"]}
    assert state_of(store)["attempts"] == 3


@pytest.mark.parametrize("kind", [DeliveryError, RuntimeError])
def test_what_is_kept_of_a_refusal_has_no_secret(store: Store, kind: type[Exception]) -> None:
    add(store, "hook")
    deliver(store, {"hook": Target(kind("https://ann:pa55word@hooks.example.com/?token=pa55word did not answer"))})
    assert "hooks.example.com" in state_of(store)["problem"]
    assert "pa55word" not in state_of(store)["problem"]


def test_one_action_down_does_not_hold_up_another(store: Store) -> None:
    add(store, "down", "up")
    assert deliver(store, {"down": Target(DeliveryError("500")), "up": Target()}) == (1, 1)


def test_what_no_retry_can_help_is_dead_at_once_and_can_be_replayed(store: Store) -> None:
    target = Target(DeliveryError("a forbidden address", final=True))
    add(store, "hook")
    deliver(store, {"hook": target})
    assert state_of(store)["state"] == "dead"
    with store.write() as connection:
        assert outbox.replay(connection, body()["id"], NOW) == 1
    assert deliver(store, {"hook": target}) == (1, 0)
    with store.write() as connection:
        assert outbox.replay(connection, body()["id"], NOW) == 0


def test_after_many_refusals_it_is_dead_but_kept(store: Store) -> None:
    target = Target(*[DeliveryError("500")] * 100)
    add(store, "hook")
    at = NOW
    for _ in range(50):
        deliver(store, {"hook": target}, at)
        at += timedelta(days=1)
    assert len(target.got) == delivery.ATTEMPTS
    assert state_of(store)["state"] == "dead"
    assert state_of(store)["problem"] == "500"


def test_a_target_that_refuses_over_a_long_weekend_is_told_and_tried_again(store: Store) -> None:
    target = Target(*[DeliveryError("refused with 401")] * 1000)
    add(store, "hook")
    at = NOW
    while at < NOW + timedelta(days=3.5):
        deliver(store, {"hook": target}, at)
        at = max(at, state_of(store)["next_at"])
    assert state_of(store)["state"] == "pending"
    with store.read() as connection:
        ((told,),) = outbox.undelivered(connection, ["digits"]).values()
        assert outbox.states(connection, ["digits"]) == {"digits": {"failing": 1}}
    assert (told.event_id, told.problem, told.next_at) == (body()["id"], "refused with 401", at)
    target.answers = []
    with store.write() as connection:
        assert outbox.replay(connection, body()["id"], NOW) == 1
    assert deliver(store, {"hook": target}) == (1, 0)


def test_a_target_that_is_away_for_a_moment_is_told_to_nobody(store: Store) -> None:
    target = Target(*[DeliveryError("500")] * (outbox.TOLD_AFTER - 1))
    add(store, "hook")
    for _ in range(outbox.TOLD_AFTER - 1):
        deliver(store, {"hook": target}, NOW if not target.got else state_of(store)["next_at"])
    with store.read() as connection:
        assert outbox.undelivered(connection, ["digits"]) == {}
        assert outbox.states(connection, ["digits"]) == {"digits": {"pending": 1}}


def test_an_action_that_is_no_longer_configured_is_said_and_given_up_after_hours(store: Store) -> None:
    add(store, "hook")
    assert deliver(store, {}) == (0, 1)
    assert "no action 'hook'" in state_of(store)["problem"]
    for _ in range(delivery.ATTEMPTS_WITHOUT - 1):
        assert state_of(store)["state"] == "pending"
        deliver(store, {}, state_of(store)["next_at"])
    assert (state_of(store)["state"], state_of(store)["attempts"]) == ("dead", delivery.ATTEMPTS_WITHOUT)
    assert timedelta(hours=2) < state_of(store)["next_at"] - NOW


def test_a_process_that_does_not_know_an_action_yet_costs_no_event(store: Store) -> None:
    """While a configuration is rolled out the workers have different ones; also after many refusals."""
    target = Target(*[DeliveryError("502")] * 12)
    add(store, "pager")
    for _ in range(12):
        deliver(store, {"pager": target}, NOW if not target.got else state_of(store)["next_at"])
    deliver(store, {}, state_of(store)["next_at"])
    assert "no action 'pager'" in state_of(store)["problem"]
    assert deliver(store, {"pager": target}, state_of(store)["next_at"]) == (1, 0)


def test_the_target_is_not_asked_sooner_than_it_wants(store: Store) -> None:
    assert delivery.wait_after(1, retry_after=3600) >= timedelta(hours=1)
    assert delivery.wait_after(1) <= delivery.FIRST_WAIT
    assert delivery.wait_after(30) <= delivery.LONGEST_WAIT
    assert delivery.wait_after(1, retry_after=10**9) <= timedelta(days=1)


def test_an_unknown_event_cannot_be_replayed(store: Store) -> None:
    with store.write() as connection, pytest.raises(NotFoundError, match="opmon events list"):
        outbox.replay(connection, "nothing", NOW)


def test_told_to_stop_it_leaves_the_rest_for_the_next_time(store: Store) -> None:
    first, second = Target(), Target()
    add(store, "first", "second")
    with hold(store, "digits") as lease:
        actions = {"first": first, "second": second}
        assert delivery.deliver(lease, "digits", actions, lambda: NOW, lambda: bool(first.got)) == (1, 1)
    assert second.got == []
    assert deliver(store, {"first": first, "second": second}) == (1, 0)
    assert (len(first.got), len(second.got)) == (1, 1)


def test_a_recovery_waits_for_the_alarm_before_it(store: Store) -> None:
    target = Target(DeliveryError("not now"))
    add(store, "hook")
    recovered = {**body(2), "type": "opmon.recovered"}
    with store.write() as connection:
        outbox.add(connection, rounds.get(connection, "digits", 1).id, recovered, ["hook"], NOW)
    assert deliver(store, {"hook": target}) == (0, 1)
    assert deliver(store, {"hook": target}, NOW + timedelta(hours=1)) == (2, 0)
    assert target.got == [body()["id"], body()["id"], recovered["id"]]


def test_a_target_that_fails_and_fails_is_left_alone_and_holds_up_nobody(store: Store) -> None:
    bad, good = Target(*[DeliveryError("no")] * 10), Target()
    with store.write() as connection:
        for number in range(6):
            about = {**body(number), "rule": f"rule-{number}"}
            outbox.add(connection, rounds.get(connection, "digits", 1).id, about, ["bad", "good"], NOW)
    assert deliver(store, {"bad": bad, "good": good}) == (6, 6)
    assert (len(bad.got), len(good.got)) == (delivery.PATIENCE, 6)


def test_what_waits_is_withdrawn_when_it_is_over(store: Store) -> None:
    later = {**body(), "model": {"uri": "models:/digits/1"}}
    with store.write() as connection:
        round_id = rounds.get(connection, "digits", 1).id
        outbox.add(connection, round_id, later, {"now": NOW, "later": NOW + timedelta(hours=1)}, NOW)
        assert outbox.last_alarm(connection, "digits", "floor", NOW) == NOW
        assert outbox.withdraw(connection, "digits", "floor", "models:/digits/2", NOW) == set()
        assert outbox.withdraw(connection, "digits", "floor", "models:/digits/1", NOW) == {"later"}
    target = Target()
    assert deliver(store, {"now": target, "later": target}, NOW + timedelta(hours=2)) == (1, 0)


def test_an_alarm_that_nobody_heard_of_begins_no_cooldown(store: Store) -> None:
    later = {**body(), "model": {"uri": "models:/digits/1"}}
    with store.write() as connection:
        round_id = rounds.get(connection, "digits", 1).id
        outbox.add(connection, round_id, later, {"hook": NOW + timedelta(hours=1)}, NOW)
        outbox.withdraw(connection, "digits", "floor", "models:/digits/1", NOW)
        assert outbox.last_alarm(connection, "digits", "floor", NOW) is None


def test_what_a_clock_that_was_ahead_wrote_holds_up_nothing(store: Store) -> None:
    ahead, target = NOW + timedelta(days=3650), Target()
    alarm = {**body(), "model": {"uri": "models:/digits/1"}}
    recovered = {**body(2), "type": "opmon.recovered"}
    with store.write() as connection:
        round_id = rounds.get(connection, "digits", 1).id
        outbox.add(connection, round_id, alarm, ["hook"], ahead)
        assert outbox.last_alarm(connection, "digits", "floor", NOW) is None, "it begins no cooldown"
        assert outbox.withdraw(connection, "digits", "floor", "models:/digits/1", NOW) == set()
        outbox.add(connection, round_id, recovered, ["hook"], NOW)
        assert readiness.monitors_with_work(connection, NOW) == {"digits"}
    assert deliver(store, {"hook": target}) == (2, 0)
    assert target.got == [alarm["id"], recovered["id"]]


def test_an_attempt_that_a_clock_ahead_put_off_is_made_and_the_next_one_waits_as_ever(store: Store) -> None:
    target = Target(*[DeliveryError("no")] * 3)
    add(store, "hook")
    assert deliver(store, {"hook": target}, NOW + timedelta(days=3650)) == (0, 1)
    assert deliver(store, {"hook": target}) == (0, 1)
    assert deliver(store, {"hook": target}) == (0, 0)
    assert len(target.got) == 2


def test_an_event_of_a_clock_ahead_that_is_refused_waits_as_any_other(store: Store) -> None:
    target = Target(*[DeliveryError("no")] * 3)
    with store.write() as connection:
        outbox.add(connection, None, body(), ["hook"], NOW + timedelta(hours=2))
    for _ in range(3):
        deliver(store, {"hook": target})
    assert len(target.got) == 1


def test_an_event_is_acknowledged_once(store: Store) -> None:
    add(store, "hook")
    with store.write() as connection:
        assert outbox.acknowledge(connection, body()["id"], "kim", "looking", NOW)
        assert not outbox.acknowledge(connection, body()["id"], "lee", None, NOW)
        assert outbox.listing(connection, only_open=True) == []
        with pytest.raises(NotFoundError):
            outbox.acknowledge(connection, "nothing", "kim", None, NOW)
