"""MLflow's own review queues, on a real server: what doubles, what is lost, whose word counts."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from opmon.errors import InputError, NotFoundError, UnavailableError
from opmon.registry import review
from opmon.registry._review_spans import trace_id_of
from opmon.registry.review import MlflowReview
from opmon.store import queue, rounds
from opmon.testing import check_label_provider
from opmon.types import Guide, Task

GUIDE = Guide(classes={"cat": "of any age", "dog": ""}, guidelines="Say what it **is**.")


def tasks(*numbers: int) -> list[Task]:
    return [Task(k, "pets", 1, f"i{k}", {"text": f"number {k}"}, f"t{k}-{'0' * 12}", ("cat", "dog")) for k in numbers]


class Reviewers:
    """People in MLflow's page, as far as they reach its server: the calls that the page makes."""

    def __init__(self, provider: MlflowReview) -> None:
        self.provider = provider
        self.store = provider._connection.store.unbounded
        self.last = 0

    @property
    def experiment(self) -> str:
        return str(self.provider._experiment())

    def items(self) -> list[Any]:
        return sorted(self.provider._items(self.experiment), key=lambda item: (item.creation_time_ms, item.item_id))

    def tasks(self) -> list[str]:
        keys = {trace: key for trace, key, _ in self.provider._traces(self.experiment)}
        return [keys[item.item_id] for item in self.items()]

    def say(self, key: str, truth: Any, annotator: str, at: datetime | None = None, kind: str = "HUMAN") -> Any:
        from mlflow.entities.assessment import AssessmentSource, Expectation

        while (now := time.time_ns() // 1_000_000) <= self.last:  # MLflow's own clock tells which word is the last
            time.sleep(0.001)
        self.last = now
        trace = trace_id_of(key, self.experiment)
        if truth is None:
            return self.mark(key, "declined", annotator)
        said = Expectation(name="label", value=truth, source=AssessmentSource(source_type=kind, source_id=annotator))
        said.trace_id = trace
        return self.store.create_assessment(said)

    def mark(self, key: str, status: str, who: str) -> Any:
        queue = self.store.get_review_queue_by_name(self.experiment, name="opmon").queue_id
        item = trace_id_of(key, self.experiment)
        return self.store.set_review_queue_item_status(queue, item_id=item, status=status, completed_by=who)


@pytest.fixture
def provider(server: Any) -> MlflowReview:
    """Bound to a monitor that MLflow's server has not heard of."""
    return MlflowReview(server.uri).bind(f"pets-{uuid.uuid4().hex[:8]}", GUIDE)


def words(provider: MlflowReview) -> list[tuple[str | None, str, str | None]]:
    return [(said.task_key, said.annotator, said.truth) for said in provider.pull("").said]


@pytest.mark.parametrize("where", ["server", "sqlite_uri"])
def test_it_keeps_the_contract_for_who_begins_with_the_oldest(where: str, request: pytest.FixtureRequest) -> None:
    """MLflow lists the newest batch first, as the provider says; inside a batch the order is that of the tasks."""
    found = request.getfixturevalue(where)
    uri = found if where == "sqlite_uri" else found.uri
    other = MlflowReview(uri).bind(f"suite-{uuid.uuid4().hex[:8]}", GUIDE)

    class Suite(MlflowReview):
        def bind(self, monitor: str, guide: Guide) -> MlflowReview:
            return other

    people = Reviewers(other)
    assert other.pull("").said == []
    check_label_provider(Suite(uri), people)


def test_tasks_handed_over_again_and_again_are_there_once(provider: MlflowReview, monkeypatch: Any) -> None:
    provider.push(tasks(1, 2, 3))
    store = provider._connection.store.unbounded
    attach = store.add_items_to_review_queue

    def killed(*_: Any, **__: Any) -> None:
        raise ConnectionError("killed between the traces and the queue")

    monkeypatch.setattr(store, "add_items_to_review_queue", killed)
    with contextlib.suppress(UnavailableError):
        provider.push(tasks(4, 5))
    monkeypatch.setattr(store, "add_items_to_review_queue", attach)
    for _ in range(3):
        provider.push(tasks(3, 4, 5, 6))
    people = Reviewers(provider)
    assert sorted(people.tasks()) == [task.key for task in tasks(1, 2, 3, 4, 5, 6)]
    assert len(list(provider._traces(people.experiment))) == 6


def test_a_reviewer_sees_the_input_and_the_question(provider: MlflowReview) -> None:
    provider.push(tasks(1))
    people = Reviewers(provider)
    schema = people.store.get_label_schema_by_name(people.experiment, "label")
    assert schema.input.options == ["cat", "dog"]
    assert "Say what it **is**." in schema.instruction
    assert "cat: of any age" in schema.instruction
    ((trace, _, _),) = provider._traces(people.experiment)
    found = people.store.get_trace_info(trace)
    assert json.loads(found.request_preview) == {"text": "number 1"}


def test_the_last_word_of_each_person_counts_however_it_was_given(provider: MlflowReview) -> None:
    from mlflow.entities.assessment import ExpectationValue

    provider.push(tasks(1, 2))
    one, two = (task.key for task in tasks(1, 2))
    people = Reviewers(provider)
    first = people.say(one, "cat", "ann")
    people.say(one, "cat", "bob")
    people.say(one, "dog", "ann")  # MLflow keeps both, and calls both valid
    assert words(provider)[-1] == (one, "ann", "dog")
    people.last = 0
    time.sleep(0.002)
    people.store.update_assessment(first.trace_id, first.assessment_id, expectation=ExpectationValue("cat"))
    assert words(provider)[-1] == (one, "ann", "cat")
    people.say(two, None, "bob")
    assert (two, "bob", None) in words(provider)
    assert (one, "bob", "cat") in words(provider)


def test_what_is_no_answer_of_a_person_is_not_heard(provider: MlflowReview) -> None:
    provider.push(tasks(1))
    (task,) = tasks(1)
    people = Reviewers(provider)
    people.say(task.key, "dog", "a language model", kind="LLM_JUDGE")
    assert words(provider) == []
    people.say(task.key, "a fish", "ann")
    assert words(provider) == [(task.key, "ann", "a fish")]  # whether it is a class is the queue's to say


def test_an_answer_completes_no_item_so_opmon_does_it(provider: MlflowReview) -> None:
    provider.push(tasks(1, 2))
    one, two = (task.key for task in tasks(1, 2))
    people = Reviewers(provider)
    people.say(one, "cat", "ann")
    assert {str(item.status) for item in people.items()} == {"pending"}
    assert set(provider.reconcile({two})) == {two}
    assert [str(item.status) for item in people.items()] == ["complete", "pending"]
    people.say(one, "dog", "ann")  # a correction is still heard
    assert words(provider)[-1] == (one, "ann", "dog")


def test_traces_and_items_that_were_deleted_are_told_as_lost(provider: MlflowReview) -> None:
    provider.push(tasks(1, 2, 3))
    keys = [task.key for task in tasks(1, 2, 3)]
    people = Reviewers(provider)
    people.store.delete_traces(people.experiment, trace_ids=[trace_id_of(keys[0], people.experiment)])
    queue = people.store.get_review_queue_by_name(people.experiment, name="opmon").queue_id
    people.store.remove_items_from_review_queue(queue, item_ids=[trace_id_of(keys[1], people.experiment)])
    assert set(provider.reconcile(set(keys))) == {keys[2]}
    provider.push(tasks(1, 2))
    assert set(provider.reconcile(set(keys))) == set(keys)


def test_other_classes_are_asked_for_although_items_are_attached(provider: MlflowReview) -> None:
    provider.push(tasks(1))
    more = provider.bind(provider._monitor, Guide(classes=dict.fromkeys(("cat", "dog", "cow"), "")))
    new = Task(2, "pets", 2, "i2", {}, f"t2-{'0' * 12}", ("cat", "dog", "cow"))
    more.push([new])
    people = Reviewers(provider)
    assert people.store.get_label_schema_by_name(people.experiment, "label").input.options == ["cat", "dog", "cow"]
    many = Guide(classes=dict.fromkeys(map(str, range(30)), ""))
    provider.bind(provider._monitor, many).push([Task(3, "pets", 2, "i3", {}, f"t3-{'0' * 12}", tuple(many.classes))])
    schema = people.store.get_label_schema_by_name(people.experiment, "label in words")
    assert type(schema.input).__name__ == "InputText"  # MLflow takes ten options at most
    assert "29" in schema.instruction
    assert sorted(people.tasks()) == [f"t{k}-{'0' * 12}" for k in (1, 2, 3)]


def test_numbers_are_asked_for(provider: MlflowReview) -> None:
    of_numbers = provider.bind(provider._monitor, Guide("regression", unit="days"))
    of_numbers.push([Task(1, "pets", 1, "i1", {"x": 1}, f"t1-{'0' * 12}")])
    Reviewers(of_numbers).say(f"t1-{'0' * 12}", 3.5, "ann")
    assert words(of_numbers) == [(f"t1-{'0' * 12}", "ann", "3.5")]


def test_more_tasks_than_a_page_are_read(provider: MlflowReview, monkeypatch: Any) -> None:
    monkeypatch.setattr(review, "_PAGE", 7)
    provider.push(tasks(*range(1, 31)))
    people = Reviewers(provider)
    assert people.tasks() == [task.key for task in tasks(*range(1, 31))]
    for task in tasks(5, 17, 30):
        people.say(task.key, "cat", "ann")
    assert sorted(key or "" for key, _, _ in words(provider)) == sorted(task.key for task in tasks(5, 17, 30))


def test_a_deleted_experiment_is_told(provider: MlflowReview) -> None:
    provider.push(tasks(1))
    provider._connection.client.delete_experiment(provider._experiment())
    with pytest.raises(NotFoundError, match="was deleted in MLflow: restore it"):
        provider.pull("")


def test_nobody_there_is_told(free_port: int, monkeypatch: Any) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UnavailableError):
        MlflowReview(f"http://127.0.0.1:{free_port}").bind("pets", GUIDE).pull("")


@pytest.mark.parametrize("users", ["ann", ("",), tuple("abcdefghijk")])
def test_wrong_users_are_told(users: Any) -> None:
    with pytest.raises(InputError, match="users must"):
        MlflowReview(users=users)


def test_moments_are_of_the_answer(provider: MlflowReview) -> None:
    provider.push(tasks(1))
    before = datetime.now(UTC)
    Reviewers(provider).say(tasks(1)[0].key, "cat", "ann")
    (said,) = provider.pull("").said
    assert abs((said.at - before).total_seconds()) < 60


def test_a_round_is_labelled_in_mlflow_by_two_processes_that_ask_again_and_again(workbench: Any, sqlite: str) -> None:
    workbench.write_window()
    labels = {"provider": {"type": "mlflow_review", "tracking_uri": workbench.tracking_uri}}
    monitors = [workbench.monitor(sqlite, labels=labels, sampler={"type": "srs", "budget": 20}) for _ in range(2)]
    for monitor in monitors:
        assert monitor.advance().problems == []
    people = Reviewers(MlflowReview(workbench.tracking_uri).bind(workbench.name, Guide()))
    shown = {key: info for info, key, _ in people.provider._traces(people.experiment)}
    assert len(shown) == len(people.items()) == 20
    with monitors[0].store.read() as connection:
        asked = {task.key: workbench.truth[task.input_id] for task in queue.open_tasks(connection)}
    assert set(asked) == set(shown)
    for key, truth in asked.items():
        assert "prediction" not in people.store.get_trace_info(shown[key]).request_preview
        people.say(key, truth, "ann")
    for monitor in monitors * 2:
        assert monitor.advance().problems == []
    with monitors[0].store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        labels_ = [label for task in queue.answers(connection, round_.id) for label in task.labels]
    assert round_.state == "closed"
    assert sorted(label.truth for label in labels_) == sorted(asked.values())
