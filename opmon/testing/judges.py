"""The suite that every judge passes: an opinion for each input, by its key, the same one when it is asked again."""

from __future__ import annotations

from opmon.abc import Judge, Opinion, Question
from opmon.types import Guide, Json

GUIDE = Guide(classes={"cat": "of any age", "dog": ""}, guidelines="Say what it **is**.")


def check_judge(judge: Judge) -> None:
    """Check a judge of texts and pictures that are cats or dogs; one that names a registered model only by that."""
    assert isinstance(judge, Judge), f"{type(judge).__name__} does not subclass opmon.abc.Judge"
    assert judge.most is None or judge.most >= 1, f"most is a whole number from 1, or None; got {judge.most!r}"
    if judge.registered is not None:
        assert judge.registered.startswith("models:/"), f"registered is models:/name@alias; got {judge.registered!r}"
        return
    questions = [_question(number) for number in range(1, 9)]
    keys = [question.key for question in questions]
    assert list(judge.answer([], GUIDE)) == [], "nothing was asked, and opinions came"
    first = _opinions(judge, questions)
    assert sorted(first) == sorted(keys), (
        f"{len(keys)} inputs were asked about, and the opinions are of {sorted(first)}"
    )
    named = [each for each in first.values() if each.answer is not None or each.scores]
    assert named, "it could tell nothing of any input"
    for each in named:
        said = set(each.scores) or {each.answer or ""}
        assert said <= {"cat", "dog"}, f"it may answer cat or dog, and said {sorted(said)}"
    again = _opinions(judge, questions[::-1])
    assert again == first, "asked again, in another order, it says something else"
    alone = _opinions(judge, questions[2:3])
    assert alone == {keys[2]: first[keys[2]]}, "what it holds of an input depends on the others it is asked about"


def _opinions(judge: Judge, questions: list[Question]) -> dict[str, Opinion]:
    said = list(judge.answer(questions, GUIDE))
    assert all(isinstance(each, Opinion) for each in said), "answer() yields opmon.abc.Opinion"
    assert len({each.key for each in said}) == len(said), "an input has two opinions"
    return {each.key: each for each in said}


def _question(number: int) -> Question:
    payload: dict[str, Json] = {"text": f'number {number}, "quoted"', "pixels": [0.5, number]}
    return Question(f"k{number:032}", payload)
