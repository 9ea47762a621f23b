"""Sets of classes as they are said: by names, or by 0 and 1 in the order of the classes."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.label_sets import read, text_of
from opmon.replies import Replies
from opmon.spellings import Spellings

NAMES = ("cat", "dog", "cow")


@pytest.mark.parametrize(
    "said",
    [
        [0, 1, 1],
        (0, 1, 1),
        [False, True, True],
        [0.0, 1.0, 1.0],
        ["0", "1", "1"],
        "[0, 1, 1]",
        "[false, true, true]",
        "0,1,1",
        "0;1;1",
        "0 1 1",
        str(np.array([0, 1, 1])),
        str(np.array([0.0, 1.0, 1.0])),
    ],
    ids=str,
)
def test_zeros_and_ones_are_read_in_the_order_of_the_classes(said: object) -> None:
    assert read(said, NAMES) == text_of(["dog", "cow"])
    assert Replies("multilabel", NAMES).read(said) == text_of(["dog", "cow"])


def test_all_and_none_of_them() -> None:
    assert read([0, 0, 0], NAMES) == "[]"
    assert read([1, 1, 1], NAMES) == text_of(NAMES)
    assert read([1], ["cat"]) == '["cat"]'
    assert read([1, 0], ["cat", "dog"]) == '["cat"]'


def test_classes_may_be_called_by_numbers() -> None:
    digits = ["0", "1", "2", "3"]
    assert read([0, 1], digits) == '["0", "1"]', "names: there are fewer than classes"
    assert read([0, 1, 0, 0], digits) == '["1"]'
    assert read([1, 1, 0, 0], digits) == '["0", "1"]'
    assert read([1], ["0", "1"]) == '["1"]'
    assert read([0, 1], ["0", "1"]) == '["0", "1"]', "of two it cannot be told: they are names, as ever"
    spelt = Spellings.of({"paid": [0], "default": [1]})
    assert read([1], ["paid", "default"], spelt) == '["default"]'


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (NAMES, "asks for some of 3 classes; a list of 4 zeros and ones must have one for each, in the order"),
        (None, "a list of 4 zeros and ones does not say them: write them under 'classes'"),
    ],
)
def test_lists_that_cannot_be_placed_say_what_to_do(classes: tuple[str, ...] | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read([0, 1, 0, 0], classes)
    with pytest.raises(InputError, match=r"'0\.7' is none of them"):
        read([0.7, 0.1, 0], NAMES)
