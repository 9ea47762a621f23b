"""One class may have many spellings; a spelling stands for one class."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.spellings import Spellings

SPELT = Spellings.of({"paid": [0, "PAID"], "default": [1.0, True]})


def test_every_spelling_has_its_class_and_every_other_text_is_its_own() -> None:
    texts = ["0", "PAID", "1", "true", "paid", "lost", ""]
    assert SPELT.named(np.array(texts)).tolist() == ["paid", "paid", "default", "default", "paid", "lost", ""]
    assert Spellings().named(np.array(texts)).tolist() == texts
    assert SPELT.named(np.array([], dtype=np.str_)).tolist() == []


def test_names_of_a_model_are_known_in_any_order() -> None:
    assert SPELT.all_named(["1", "0"], ["paid", "default"]) == ("default", "paid")
    assert SPELT.all_named(["1", "2"], ["paid", "default"]) is None
    assert SPELT.all_named(["1", "true"], ["paid", "default"]) is None


@pytest.mark.parametrize("classes", [{"a": [1], "b": [1.0]}, {"a": ["b"], "b": []}, {"a": [True], "b": ["TRUE"]}])
def test_a_spelling_of_two_classes_is_refused(classes: dict[str, list[object]]) -> None:
    with pytest.raises(InputError, match="cannot stand for both"):
        Spellings.of(classes)
