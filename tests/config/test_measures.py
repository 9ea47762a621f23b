"""What the configuration says of measures, and how it is told what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from opmon.config import MonitorSettings, Settings
from opmon.errors import ConfigError
from opmon.quantities import ACCURACY, mean_squared_error

FRAUD = ["legit", "fraud"]


def monitor(**changes: Any) -> MonitorSettings:
    base = {"model": "models:/m/1", "source": {"path": "in/"}, "classes": FRAUD}
    if changes.get("problem") == "regression":
        base |= {"classes": None, "sampler": {"type": "srs"}}
    return Settings.from_mapping({"monitors": {"m": base | changes}}, "/watch").monitor("m")


RECALL = {"recall": {"class": "fraud"}}


def test_a_monitor_that_names_nothing_estimates_what_is_usual() -> None:
    assert monitor().quantity == ACCURACY
    assert monitor(problem="regression", unit="days").quantity == mean_squared_error("days")
    assert monitor(measures=["accuracy", RECALL]).quantity == ACCURACY


@pytest.mark.parametrize("main", ["recall", "recall[fraud]"])
def test_the_main_one_is_said_by_its_name_or_key(main: str) -> None:
    assert monitor(measures=["accuracy", RECALL], main=main).quantity.name == "recall[fraud]"


@pytest.mark.parametrize("main", ["accuracy", None])
def test_the_usual_one_may_be_named(main: str | None) -> None:
    assert monitor(measures=["accuracy", RECALL], main=main).main_measure is None


def test_an_error_has_the_unit_of_the_labels() -> None:
    found = monitor(problem="regression", unit="days", measures=["mean_absolute_error"], main="mean_absolute_error")
    assert (found.quantity.title, found.quantity.better) == ("MAE (days)", "lower")


def test_what_is_read_is_shown_as_it_can_be_written_again() -> None:
    shown = monitor(measures=["accuracy", RECALL], main="recall").model_dump(mode="json")
    assert monitor(measures=shown["measures"], main=shown["main"]).quantity.name == "recall[fraud]"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"measures": ["recal"]}, r"measures\[0\]\.type.*no such measure \(did you mean 'recall'\?\)"),
        ({"measures": [{"recall": {"klass": "fraud"}}]}, r"no such key \(did you mean 'class'\?\)"),
        ({"measures": [{"recall": {"class": "fruad"}}]}, r"there is no class 'fruad'.*legit, fraud"),
        ({"measures": [{"recall": "fraud"}]}, r"takes its parameters by name"),
        ({"measures": ["recall"]}, r"recall is of one class or of all"),
        ({"measures": [{"recall": {"class": "fraud"}, "f1": {}}]}, r"must be the name of a measure, or"),
        ({"measures": ["mean_absolute_error"]}, r"no measure for problem: classification; those for it are: accuracy"),
        ({"problem": "regression", "measures": [RECALL]}, r"no measure for problem: regression"),
        ({"measures": [RECALL, RECALL]}, r"'recall\[fraud\]' is listed twice"),
        ({"measures": ["accuracy"], "main": "recall"}, r"main.*'recall' is none of the measures; they are: accuracy"),
        ({"main": "recall"}, r"'recall' is none of the measures; they are: none"),
        (
            {"measures": [RECALL, {"recall": {"class": "legit"}}], "main": "recall"},
            r"'recall' is said of several: name one of recall\[fraud\], recall\[legit\]",
        ),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:24],
)
def test_what_cannot_be_measured_is_refused_when_read(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        monitor(**changes)


def test_a_class_may_be_a_number() -> None:
    found = monitor(
        classes=[0, 1], measures=[{"recall": {"class": 1}}, {"cost": {"matrix": {"1": {"0": 5}, "0": {"1": 1}}}}]
    )
    assert [each.key for each in found.measures] == ["recall[1]", "cost"]
    with pytest.raises(ConfigError, match=r"measures\[0\].class: put true and false in quotes|must be text: put true"):
        monitor(classes=["false", "true"], measures=[{"recall": {"class": True}}])
