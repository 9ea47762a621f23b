"""The suite that every label provider passes: a task is asked once, and an answer comes back once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from opmon.abc import LabelProvider, Pulled, Said
from opmon.types import Guide, Json, Task

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ANN, BOB = "ann@example.com", "bob@example.com"
CLASSES = ("cat", "dog", "dog, or 'wolf'")
GUIDE = Guide(classes={"cat": "of any age", "dog": "", "dog, or 'wolf'": ""}, guidelines="Say what it **is**.")


class Annotators(Protocol):
    """The people behind a provider, as a test plays them."""

    def tasks(self) -> list[str]:
        """The keys of the tasks that they are shown, in that order; one shown twice is in it twice."""
        ...

    def say(self, key: str, truth: str | None, annotator: str, at: datetime) -> None:
        """Answer a task, or skip it."""
        ...


def check_label_provider(provider: LabelProvider, annotators: Annotators) -> None:
    """Check a provider that has no tasks yet, with the ``annotators`` who look at it."""
    assert isinstance(provider, LabelProvider), f"{type(provider).__name__} does not subclass opmon.abc.LabelProvider"
    bound = provider.bind("suite", GUIDE)
    assert isinstance(bound, LabelProvider), "bind() gives the provider for one monitor"
    assert len(bound.check().splitlines()) == 1, "check() gives one line"
    tasks = [_task(number) for number in range(1, 9)]
    keys = [task.key for task in tasks]
    assert list(bound.pull("").said) == [], "answers came before there was a task"
    _hands_over_once(bound, annotators, tasks)
    assert set(bound.reconcile(frozenset(keys))) == set(keys), "reconcile() has lost tasks that were handed over"
    _hears_once(bound, annotators, keys)
    _hears_of_skips_and_corrections(bound, annotators, keys)
    bound.reconcile(frozenset(keys[3:]))  # the others have their answers
    bound.push(tasks[3:])
    assert sorted(annotators.tasks()[-5:]) == sorted(keys[3:]), "reconcile() took tasks away that are still open"


def _hands_over_once(provider: LabelProvider, annotators: Annotators, tasks: list[Task]) -> None:
    keys = [task.key for task in tasks]
    provider.push(tasks[:3])
    assert annotators.tasks() == keys[:3], f"annotators are shown {annotators.tasks()}, and {keys[:3]} were pushed"
    for _ in range(2):
        provider.push(tasks)
    assert sorted(annotators.tasks()) == keys, f"of tasks pushed again annotators are shown {annotators.tasks()}"
    assert annotators.tasks()[:3] == keys[:3], "tasks pushed later come before the first ones"


def _hears_once(provider: LabelProvider, annotators: Annotators, keys: list[str]) -> None:
    begun = provider.pull("")
    assert list(begun.said) == [], "answers came though nobody has said anything"
    annotators.say(keys[0], "cat", ANN, NOW)
    heard = provider.pull(begun.cursor)
    assert _words(heard) == {(keys[0], ANN, "cat")}, f"ann said cat of the first task, and pull() gave {heard.said}"
    assert _words(provider.pull(begun.cursor)) == _words(heard), "the same cursor gives something else"
    again = provider.pull(heard.cursor)
    assert _words(again) <= _words(heard), f"nobody said anything since, and pull() gave {again.said}"
    assert [said.at for said in again.said] == [said.at for said in heard.said if said in again.said], (
        "what is given again has another moment, so that it counts as said again"
    )


def _hears_of_skips_and_corrections(provider: LabelProvider, annotators: Annotators, keys: list[str]) -> None:
    cursor = provider.pull("").cursor
    annotators.say(keys[1], None, BOB, NOW + timedelta(minutes=1))
    annotators.say(keys[2], "dog, or 'wolf'", BOB, NOW + timedelta(minutes=2))
    skipped = provider.pull(cursor)
    assert {(keys[1], BOB, None), (keys[2], BOB, "dog, or 'wolf'")} <= _words(skipped), (
        f"bob skipped the second task and spoke of the third, and pull() gave {skipped.said}"
    )
    annotators.say(keys[0], "dog", ANN, NOW + timedelta(minutes=3))
    corrected = provider.pull(skipped.cursor)
    ann = [said for said in corrected.said if (said.task_key, said.annotator) == (keys[0], ANN)]
    assert ann, "a correction is not heard"
    assert ann[-1].truth == "dog", f"ann corrected cat to dog, and pull() gave {ann}"
    whole = {(said.task_key, said.annotator): said.truth for said in provider.pull("").said}
    expected = {(keys[0], ANN): "dog", (keys[1], BOB): None, (keys[2], BOB): "dog, or 'wolf'"}
    assert whole == expected, f"from the beginning, pull() amounts to {whole}"


def _words(pulled: Pulled) -> set[tuple[str | None, str, str | None]]:
    assert isinstance(pulled, Pulled), "pull() gives Pulled"
    assert isinstance(pulled.cursor, str), "a cursor is text"
    assert all(isinstance(said, Said) for said in pulled.said), "pull() gives Said"
    assert list(pulled.problems) == [], f"pull() told problems: {pulled.problems}"
    return {(said.task_key, said.annotator, said.truth) for said in pulled.said}


def _task(number: int) -> Task:
    payload: dict[str, Json] = {
        "text": f'number {number}, "quoted"',
        "pixels": [0.5, number],
        "picture": {"base64": "iVBORwA="},
    }
    key = f"t{number}-0123456789ab"
    return Task(number, "suite", 1 + number // 5, f"input-{number}", payload, key, CLASSES, NOW)
