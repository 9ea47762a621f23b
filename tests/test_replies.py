from __future__ import annotations

import pytest

from opmon import label_sets, scales
from opmon.errors import InputError
from opmon.kept_quantities import named
from opmon.problems import PROBLEMS, loss, traits
from opmon.quantities import of
from opmon.replies import Replies
from opmon.spellings import Spellings


@pytest.mark.parametrize("said", ["pass", " PASS ", "Yes", "true", "1", "1.0", "ok", "y"])
def test_a_pass_is_said_in_many_words(said: str) -> None:
    assert Replies("judged", scale="pass_fail").read(said) == "pass"


@pytest.mark.parametrize("said", [0, 0.0, False, "no", "Failed"])
def test_so_is_a_fail(said: object) -> None:
    assert Replies("judged", scale="pass_fail").read(said) == "fail"


@pytest.mark.parametrize(
    ("scale", "said", "allowed"),
    [
        ("pass_fail", "0.5", "pass or fail"),
        ("pass_fail", "maybe", "pass or fail"),
        ("score", "1.01", "a score from 0 to 1"),
        ("score", "-0.1", "a score from 0 to 1"),
        ("score", "nan", "a score from 0 to 1"),
        ("score", "inf", "a score from 0 to 1"),
        ("score", "", "a score from 0 to 1"),
        ("stars", "0", "one to five stars"),
        ("stars", "6", "one to five stars"),
        ("stars", "4.5", "one to five stars"),
        ("stars", "4 of 7", "one to five stars"),
    ],
)
def test_what_is_no_judgement_is_refused_with_its_name(scale: scales.Scale, said: str, allowed: str) -> None:
    with pytest.raises(InputError) as error:
        Replies("judged", scale=scale).read(said)
    assert allowed in str(error.value)
    assert repr(said) in str(error.value)


@pytest.mark.parametrize("scale", ["pass_fail", "score", "stars"])
@pytest.mark.parametrize("said", ["pass", "0.25", "1", "0", "3", "4 of 5", "5/5", "2 stars", "yes"])
def test_what_is_kept_is_read_as_itself_again(scale: scales.Scale, said: str) -> None:
    replies = Replies("judged", scale=scale)
    kept = replies.may_be(said)
    if kept is not None:
        assert replies.read(kept) == kept
        assert 0 <= scales.score_of(kept) <= 1


@pytest.mark.parametrize(
    ("classes", "said", "near"),
    [
        (["007", "012"], "7", "007"),
        (["000", "012"], "0", "000"),
        (["Paid", "lost"], "PAID", "Paid"),
        (["7", "007", "12"], "0007", None),
        (["a", "b"], "c", None),
    ],
)
def test_a_name_that_a_spreadsheet_changed_is_asked_for(classes: list[str], said: str, near: str | None) -> None:
    with pytest.raises(InputError) as error:
        Replies(classes=classes).read(said)
    told = str(error.value)
    assert f"got {said!r}" in told
    assert "did you mean" not in told if near is None else f"did you mean {near!r}?" in told


def test_stars_are_a_fifth_of_the_way_apart() -> None:
    read = Replies("judged", scale="stars").read
    assert [scales.score_of(read(str(stars))) for stars in range(1, 6)] == [0, 0.25, 0.5, 0.75, 1]


def test_a_middle_of_mixed_scales() -> None:
    assert scales.middle(["pass", "fail", "0.5"], "mean") == "0.5"
    assert scales.middle(["1", "0.9", "0"], "median") == "0.9"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("b;a", '["a", "b"]'),
        ("b | a", '["a", "b"]'),
        ("b, a,", '["a", "b"]'),
        ("b\na", '["a", "b"]'),
        (["b", "a", "b"], '["a", "b"]'),
        ('["b"]', '["b"]'),
        ({"a": 1, "b": False}, '["a"]'),
        ('{"a": "no", "b": "yes"}', '["b"]'),
        ("none", "[]"),
        ([], "[]"),
        ("", "[]"),
        ("a", '["a"]'),
    ],
)
def test_a_set_is_read_from_whatever_says_it(said: object, kept: str) -> None:
    assert label_sets.read(said, ["a", "b"]) == kept
    assert label_sets.read(kept, ["a", "b"]) == kept


def test_a_class_with_a_mark_in_its_name_is_one_class() -> None:
    classes = ["food, drink", "none", "tools"]
    assert label_sets.members(label_sets.read("food, drink", classes)) == ("food, drink",)
    assert label_sets.members(label_sets.read("none", classes)) == ("none",)
    assert label_sets.read(["food, drink", "tools"], classes) == '["food, drink", "tools"]'


@pytest.mark.parametrize("said", ["a;cow", ["cow"], {"cow": True}, {"a": 0.7}, [["a"]], '[{"a": 1}]', "[" * 5000, [""]])
def test_what_is_no_set_is_refused(said: object) -> None:
    with pytest.raises(InputError, match="asks for"):
        label_sets.read(said, ["a", "b"])


def test_sets_know_other_spellings() -> None:
    spelt = Spellings.of({"cat": ["Katze", 1], "dog": ["Hund"]})
    assert Replies("multilabel", ["cat", "dog"], spelt).read("Katze;Hund") == '["cat", "dog"]'
    assert Replies("multilabel", ["cat", "dog"], spelt).read([1]) == '["cat"]'


def test_classes_and_numbers_are_read_as_ever() -> None:
    assert Replies(classes=["cat"]).read(" cat ") == "cat"
    assert Replies("regression").read("3.50") == "3.5"
    for replies, said in ((Replies(classes=["cat"]), "dog"), (Replies("regression"), "far"), (Replies(), " ")):
        with pytest.raises(InputError):
            replies.read(said)


@pytest.mark.parametrize("said", ["12", "12.0", " 12", "+12.", "1.2e1", 12, 12.0])
def test_a_number_has_one_spelling(said: object) -> None:
    assert Replies("regression").read(said) == "12"


@pytest.mark.parametrize("replies", [Replies("regression"), Replies("judged", scale="score")])
@pytest.mark.parametrize("said", ["0_1", "1_000", "nan", "inf"])
def test_what_is_no_number_to_people_is_refused(replies: Replies, said: str) -> None:
    with pytest.raises(InputError, match="asks for a"):
        replies.read(said)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problem_has_its_quantity_and_loss(problem: str) -> None:
    quantity = of(problem)  # type: ignore[arg-type]
    assert quantity.share is traits(problem).is_share  # type: ignore[arg-type]
    assert named(quantity.name) == quantity
    truth = {"regression": "3", "judged": "1", "multilabel": '["a"]'}.get(problem, "a")
    assert loss(truth, truth, problem) == 0  # type: ignore[arg-type]
