"""Columns of scores are named by class, in any order, and what does not go together is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opmon.config import Settings
from opmon.errors import ConfigError


def monitor(scores: object, **more: Any) -> Any:
    one = {
        "model": "models:/m@champion",
        "source": {"path": "log"},
        "scoring": {"by": "logged"},
        "columns": {"prediction": "said", "scores": scores},
    }
    return Settings.from_mapping({"monitors": {"m": one | more}}, Path("/nowhere")).monitor("m")


def test_the_classes_may_be_left_out() -> None:
    found = monitor({"ok": "p_ok", "fraud": "p_fraud"})
    assert found.class_names == ("ok", "fraud")
    assert found.columns.scores == ("p_ok", "p_fraud")
    assert monitor({0: "p0", 1: "p1"}).class_names == ("0", "1")


@pytest.mark.parametrize("classes", [["ok", "fraud"], {"ok": 0, "fraud": [1, "FRAUD"]}])
def test_the_order_is_that_of_the_classes(classes: object) -> None:
    found = monitor({"fraud": "p_fraud", "ok": "p_ok"}, classes=classes)
    assert found.class_names == ("ok", "fraud")
    assert found.columns.scores == ("p_ok", "p_fraud")


def test_lists_and_single_columns_stay_what_they_were() -> None:
    assert monitor(["a", "b"]).columns.scores == ("a", "b")
    assert monitor("all").columns.scores == ("all",)


def test_classes_that_are_none_are_told_as_ever() -> None:
    with pytest.raises(ConfigError, match="classes"):
        monitor({"ok": "p_ok", "fraud": "p_fraud"}, classes=[True, False])


@pytest.mark.parametrize(
    ("scores", "classes", "told"),
    [
        ({"ok": "p_ok", "fraud": "p_fraud"}, ["ok", "fraud", "other"], "names no column for the class 'other'"),
        ({"ok": "p_ok", "frad": "p"}, ["ok", "fraud"], "no class 'frad' (did you mean 'fraud'?); the classes are: ok"),
        ({"ok": "p", "fraud": "p"}, None, "names the column 'p' for 'ok' and for 'fraud': each class has its own"),
        ({"1": "p", "1.0": "q"}, None, "names the class '1' twice"),
        ({"ok": "p_ok"}, None, "must name the columns of at least two classes"),
        ({}, None, "must name the columns of at least two classes"),
        ({"ok": "p_ok", "fraud": 3}, None, "must name the column with the scores of 'fraud'"),
    ],
)
def test_what_does_not_go_together_is_refused(scores: object, classes: object, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        monitor(scores, classes=classes)
    assert told in str(refused.value)
    assert "columns.scores" in str(refused.value)
