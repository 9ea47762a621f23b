"""The queue as annotators meet it, on both databases."""

from __future__ import annotations

import base64
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from opmon.errors import InputError, NotFoundError
from opmon.labels.queue import Answer, LabelQueue, QueueTerms
from opmon.store import queue, rounds
from opmon.store.engine import Store, open_store
from opmon.store.schema import labels, tasks
from tests.conftest import Clock
from tests.labels.queued import NOW, asked, gold, open_round


@pytest.fixture
def store(database: str) -> Store:
    return open_store(database)


@pytest.fixture
def desk(store: Store, clock: Clock) -> LabelQueue:
    return LabelQueue(store, {"digits": QueueTerms(timedelta(minutes=15))}, clock)


def keys(desk: LabelQueue, annotator: str, count: int = 1) -> list[str]:
    return [task.key for task in desk.take(annotator, "digits", count).tasks]


def test_two_people_never_get_the_same_task(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(5))
    ann, ben = keys(desk, "ann", 3), keys(desk, "ben", 3)
    assert len(ann) == 3
    assert len(ben) == 2
    assert not set(ann) & set(ben)
    assert keys(desk, "cat") == []


def test_a_reload_gives_the_same_tasks_again(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(5))
    first = keys(desk, "ann", 2)
    assert keys(desk, "ann", 2) == first
    assert keys(desk, "ann", 3)[:2] == first
    desk.answer("ann", [Answer(first[0], "7")])
    assert first[0] not in keys(desk, "ann", 3)


def test_what_runs_out_goes_to_somebody_else_and_its_answer_still_counts(
    desk: LabelQueue, store: Store, clock: Clock
) -> None:
    open_round(store, asked(1))
    (key,) = keys(desk, "ann")
    clock.pass_(minutes=16)
    assert keys(desk, "ben") == [key]
    assert desk.answer("ann", [Answer(key, "7")]).new == 1
    assert desk.answer("ben", [Answer(key, "1")]).new == 1
    assert desk.progress("digits").open == 0


def test_what_is_given_back_goes_to_somebody_else(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(1))
    (key,) = keys(desk, "ann")
    assert desk.give_back("ben", [key]) == 0
    assert desk.give_back("ann", [key]) == 1
    assert keys(desk, "ben") == [key]


def test_two_annotators_speak_of_what_needs_two(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(2, needs=2))
    ann, ben = keys(desk, "ann", 5), keys(desk, "ben", 5)
    assert set(ann) == set(ben)
    assert keys(desk, "cat") == []
    assert desk.answer("ann", [Answer(key, "7") for key in ann]).new == 2
    assert keys(desk, "ann") == []
    assert desk.progress("digits").spoken == 0
    desk.answer("ben", [Answer(ben[0], "7"), Answer(ben[1], None, why="too dark")])
    assert desk.progress("digits").spoken == 2


def test_a_blind_second_opinion_of_failures_and_a_third_where_they_differ(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(2, confirm=2))
    right, wrong = keys(desk, "ann", 2)
    desk.answer("ann", [Answer(right, "7"), Answer(wrong, "1")])
    assert desk.progress("digits").spoken == 1
    assert keys(desk, "ann") == []
    assert keys(desk, "ben", 2) == [wrong]
    assert keys(desk, "cat", 2) == []
    desk.answer("ben", [Answer(wrong, "7")])
    assert desk.progress("digits").spoken == 1
    assert keys(desk, "cat", 2) == [wrong]
    desk.answer("cat", [Answer(wrong, "7")])
    assert desk.progress("digits").spoken == 2


def test_a_correction_that_makes_a_failure_asks_for_a_second_opinion(
    desk: LabelQueue, store: Store, clock: Clock
) -> None:
    round_id = open_round(store, asked(1, confirm=2))
    (key,) = keys(desk, "ann")
    desk.answer("ann", [Answer(key, "7")])
    with store.read() as connection:
        assert rounds.get(connection, "digits", 1).ready
    desk.answer("ann", [Answer(key, "1")])
    with store.read() as connection:
        round_ = rounds.get(connection, "digits", 1)
        assert (round_.spoken, round_.ready) == (0, False)
    assert keys(desk, "ben") == [key]
    clock.pass_(seconds=1)
    desk.answer("ann", [Answer(key, "7")])
    with store.read() as connection:
        assert rounds.get(connection, "digits", 1).spoken == 1
        assert queue.count(connection, round_id) == 3


def test_a_skip_is_no_second_opinion(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(1, confirm=2))
    (key,) = keys(desk, "ann")
    desk.answer("ann", [Answer(key, "1")])
    desk.answer("ben", [Answer(key, None)])
    assert keys(desk, "cat") == [key]
    desk.answer("cat", [Answer(key, None)])
    assert desk.progress("digits").spoken == 1


def test_second_opinions_lie_among_the_others(desk: LabelQueue, store: Store) -> None:
    """Whoever gets them must not find them all in front."""
    open_round(store, asked(60, confirm=2))
    first = keys(desk, "ann", 20)
    desk.answer("ann", [Answer(key, "1") for key in first])
    order = keys(desk, "ben", 60)
    places = [order.index(key) for key in first]
    assert max(places) > 30
    assert sum(places) / 20 > 15


def test_gold_is_met_like_any_other_task_and_counted_nowhere(desk: LabelQueue, store: Store) -> None:
    first, second = asked(2)
    round_id = open_round(store, [first, *gold(2), second])
    taken = desk.take("ann", "digits", 10)
    assert len(taken.tasks) == 4
    assert {tuple(task.payload) for task in taken.tasks} == {("x",)}
    assert {task.round for task in taken.tasks} == {1}
    open_before = desk.progress("digits", "ann").open
    for done, task in enumerate(taken.tasks, 1):
        desk.answer("ann", [Answer(task.key, "7")])
        progress = desk.progress("digits", "ann")
        assert (progress.mine, progress.open) == (done, open_before - done)
    with store.read() as connection:
        round_ = rounds.get(connection, "digits", 1)
        assert (round_.asked, round_.spoken, round_.ready) == (2, 2, True)
        assert queue.count(connection, round_id) == 2
        assert [task.input_id for task in queue.answers(connection, round_id)] == ["input-0", "input-1"]
        assert queue.progress(connection, ["digits"], NOW) == {"digits": (2, 2, 0)}


def test_gold_holds_no_round_up(desk: LabelQueue, store: Store) -> None:
    open_round(store, [*gold(2), *asked(1)])
    drawn = next(task.key for task in desk.take("ann", "digits", 3).tasks if task.input_id == "input-0")
    desk.answer("ann", [Answer(drawn, "7")])
    with store.read() as connection:
        assert rounds.get(connection, "digits", 1).ready


def test_gold_is_not_asked_twice_of_who_may_remember_it(desk: LabelQueue, store: Store) -> None:
    for _ in range(2):
        open_round(store, [*asked(1, needs=3), *gold(1)])
    for task in desk.take("ann", "digits", 3).tasks:
        desk.answer("ann", [Answer(task.key, "1")])
    assert [task.input_id for task in desk.take("ann", "digits", 5).tasks] == []
    assert "gold-0" in [task.input_id for task in desk.take("ben", "digits", 5).tasks]


def test_urgent_rounds_come_first_then_those_due_first(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(1))
    open_round(store, asked(1), deadline_at=NOW + timedelta(days=1))
    open_round(store, asked(1), urgent=True)
    assert [task.round for task in desk.take("ann", "digits", 3).tasks] == [3, 2, 1]


def test_closed_rounds_come_last_and_given_up_ones_never(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(1), state="closed")
    open_round(store, asked(1), state="abandoned")
    open_round(store, asked(1))
    assert [task.round for task in desk.take("ann", "digits", 3).tasks] == [3, 1]


def test_who_waits_for_truth_is_not_asked(desk: LabelQueue, store: Store, clock: Clock) -> None:
    open_round(store, asked(1), asks_at=NOW + timedelta(days=1))
    assert keys(desk, "ann") == []
    clock.pass_(days=2)
    assert len(keys(desk, "ann")) == 1


def test_the_same_answer_sent_again_changes_nothing(desk: LabelQueue, store: Store, clock: Clock) -> None:
    """Nor does one that a connection held up until its annotator had said something else."""
    open_round(store, asked(1))
    (key,) = keys(desk, "ann")
    first = Answer(key, "1", at=clock.now - timedelta(minutes=5))
    assert desk.answer("ann", [first]).new == 1
    assert (desk.answer("ann", [first]).new, desk.answer("ann", [first]).unchanged) == (0, 1)
    assert desk.answer("ann", [Answer(key, "7", at=clock.now)]).new == 1
    assert desk.answer("ann", [first]).new == 0
    late = Answer(key, "0", at=clock.now - timedelta(minutes=1))
    assert desk.answer("ann", [late]).unchanged == 1
    assert [said.truth for said in desk.said("ann", "digits")] == ["7"]


def test_what_cannot_be_taken_is_refused_and_the_rest_is_kept(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(2))
    one, two = keys(desk, "ann", 2)
    foreign = f"t1-{'0' * 12}"
    given = [Answer(one, "7"), Answer(two, "dog"), Answer(foreign, "7"), Answer("x", "7")]
    recorded = desk.answer("ann", given)
    assert (recorded.new, set(recorded.refused)) == (1, {two, foreign, "x"})
    assert "classes 0, 1, 7; got 'dog'" in recorded.refused[two]
    late = desk.answer("ann", [Answer(two, "7", at=NOW.replace(tzinfo=None)), Answer(one, "7", seconds=float("nan"))])
    assert set(late.refused) == {one, two}


def test_what_was_said_is_told_newest_first_with_reason_and_time(desk: LabelQueue, store: Store) -> None:
    open_round(store, asked(3))
    one, two, three = keys(desk, "ann", 3)
    desk.answer("ann", [Answer(one, "7", seconds=2.5)])
    desk.answer("ann", [Answer(two, None, why="too dark")])
    desk.answer("ann", [Answer(one, "1")])
    desk.answer("ben", [Answer(three, "1")])
    said = desk.said("ann", "digits")
    assert [(each.task.key, each.truth, each.why) for each in said] == [(one, "1", None), (two, None, "too dark")]
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.max(labels.c.seconds))) == 2.5


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b", "truth"])
def test_names_that_no_annotator_may_have(desk: LabelQueue, name: str) -> None:
    with pytest.raises(InputError, match="annotator"):
        desk.take(name, "digits")
    with pytest.raises(InputError, match="annotator"):
        desk.answer(name, [])


def test_pictures_are_kept_as_bytes_beside_the_payload(desk: LabelQueue, store: Store) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    inside = {"base64": base64.b64encode(picture).decode()}
    open_round(store, asked(1, payload={"image": {"bytes": inside, "path": "a.png"}, "small": {"base64": "YWI="}}))
    (task,) = desk.take("ann", "digits").tasks
    reference = {"attached": "image.bytes", "type": "image/png", "bytes": len(picture)}
    assert task.payload == {"image": {"bytes": reference, "path": "a.png"}, "small": {"base64": "YWI="}}
    assert desk.picture(task.key, "image.bytes") == picture
    with pytest.raises(NotFoundError, match="no picture in its field 'other'"):
        desk.picture(task.key, "other")
    with pytest.raises(NotFoundError, match="no task"):
        desk.picture("t1-000000000000", "image.bytes")
    with store.read() as connection:
        (whole,) = queue.with_bytes(connection, queue.open_tasks(connection))
        stored = connection.scalar(sa.select(sa.cast(tasks.c.payload, sa.Text)))
    assert whole.payload["image"] == {"bytes": inside, "path": "a.png"}
    assert inside["base64"] not in stored


def test_what_a_provider_was_handed_is_left_to_it(store: Store, clock: Clock) -> None:
    from opmon.store import handing

    open_round(store, asked(2))
    with store.write() as connection:
        first = handing.unhanded(connection, "digits", "studio", 1, NOW)
        handing.note_handed(connection, "studio", [task.id for task in first], NOW)
    bound = LabelQueue(store, {"digits": QueueTerms(provider="studio")}, clock)
    assert first[0].key not in keys(bound, "ann", 5)
    elsewhere = LabelQueue(store, {"digits": QueueTerms(provider="other")}, clock)
    assert first[0].key in keys(elsewhere, "ben", 5)


def test_tasks_that_others_have_locked_for_a_moment_are_waited_for(postgres: Callable[[], str]) -> None:
    store = open_store(postgres())
    open_round(store, asked(1))
    other = store.engine.connect()
    other.execute(sa.select(tasks.c.id).with_for_update())
    looks = 0

    def clock() -> datetime:
        nonlocal looks
        looks += 1
        if looks == 2:
            other.close()
        return NOW

    assert len(keys(LabelQueue(store, clock=clock), "ann")) == 1
    assert looks == 2
    assert keys(LabelQueue(store, clock=clock), "ben") == []
    assert looks == 3, "what somebody has is not waited for"


def test_many_annotators_at_once(store: Store) -> None:
    """Tasks that need one or two; each annotator answers what they get until nothing is left for them."""
    open_round(store, [replace(task, needs=1 + task.position % 2) for task in asked(60)])
    got: list[tuple[str, str]] = []
    faults: list[BaseException] = []

    def work(annotator: str) -> None:
        dice, desk = random.Random(annotator), LabelQueue(store)
        try:
            while (taken := desk.take(annotator, "digits", dice.randint(1, 4))).progress.open:
                got.extend((annotator, task.key) for task in taken.tasks)
                desk.answer(annotator, [Answer(task.key, "7") for task in taken.tasks])
        except BaseException as exc:
            faults.append(exc)

    threads = [threading.Thread(target=work, args=(f"ann-{k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(set(got)) == len(got) == 90
    times = Counter(key for _, key in got)
    with store.read() as connection:
        needs = {row.input_id: row.needs for row in connection.execute(sa.select(tasks.c.input_id, tasks.c.needs))}
        known = {task.key: task.input_id for task in queue.open_tasks(connection)}
        assert known == {}
        assert sorted(times.values()) == sorted(needs.values())
        assert rounds.get(connection, "digits", 1).spoken == 60


def test_an_answer_asks_the_database_few_questions(desk: LabelQueue, store: Store) -> None:
    """Each is a way to the server and back, and everybody waits for whoever has changed the round and is not done."""
    open_round(store, asked(2))
    first, second = keys(desk, "ann", 2)
    desk.answer("ann", [Answer(first, "7")])
    said: list[str] = []

    def note(*given: object) -> None:
        said.append(" ".join(str(given[2]).split()[:2]))

    sa.event.listen(store.engine, "before_cursor_execute", note)
    desk.answer("ann", [Answer(second, "7")])
    sa.event.remove(store.engine, "before_cursor_execute", note)
    asks = [words for words in said if words.startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))]
    assert len(asks) == 7
    assert asks[-1] == "UPDATE rounds", "nothing stands between the change of the round and the end"
    assert desk.progress("digits").open == 0
