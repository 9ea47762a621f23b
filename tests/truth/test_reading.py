"""What a cell of a table of truths says, and what it does not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from opmon.replies import UNNAMED, Replies
from opmon.truth.reading import Vocabulary


@pytest.mark.parametrize("name", ["nan", "NaN", "None", "null", "NA", "true", "1.0"])
def test_a_class_may_have_the_name_of_something_missing(name: str) -> None:
    from opmon.values import canonical_class

    classes = (canonical_class(name), "cat")
    named, refused = Vocabulary(Replies(classes=classes)).named(pa.array([name, "", None, "cat"]))
    assert named.to_pylist() == [canonical_class(name), None, None, "cat"]
    assert refused == {}


def test_of_several_classes_one_may_be_called_nan() -> None:
    named, refused = Vocabulary(Replies("multilabel", classes=("nan", "cat"))).named(pa.array(["nan", "nan; cat"]))
    assert named.to_pylist() == ['["nan"]', '["cat", "nan"]']
    assert refused == {}


def test_nan_is_nothing_where_no_class_is_called_so() -> None:
    named, refused = Vocabulary(Replies(classes=("dog", "cat"))).named(pa.array(["nan", "cat"]))
    assert (named.to_pylist(), refused) == ([None, "cat"], {})


def test_nan_is_told_where_nobody_names_the_classes() -> None:
    named, refused = Vocabulary(Replies()).named(pa.array(["nan", "cat", None]))
    assert (named.to_pylist(), refused) == ([None, "cat", None], {UNNAMED: 1})


def test_a_truth_may_be_a_half_float() -> None:
    given = pa.array([1.0, 0.0, None]).cast(pa.float16())
    assert Vocabulary(Replies(classes=("0", "1"))).named(given)[0].to_pylist() == ["1", "0", None]
    assert Vocabulary(Replies("regression")).named(given)[0].to_pylist() == [1.0, 0.0, None]
