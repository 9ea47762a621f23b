"""Slices are configured shortly, and what cannot be a slice is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opmon.config import Settings
from opmon.config.slices import crossings_of, cuts_of
from opmon.errors import ConfigError


def monitor(slices: object, **more: Any) -> Any:
    one = {
        "model": "models:/m@champion",
        "inputs": {"features": ["x"]},
        "source": {"path": "log"},
        "sampler": {"type": "srs", "budget": 100},
        "columns": {"id": "input_id"},
    }
    return Settings.from_mapping({"monitors": {"m": one | more | {"slices": slices}}}, Path("/nowhere")).monitor("m")


def test_short_and_long_forms_mean_the_same() -> None:
    short = monitor(["country", {"age": [0, 30, 60]}, {"channel": ["web", "app"]}, ["country", "channel"]])
    long = monitor(
        [
            {"column": "country"},
            {"age": {"edges": [0, 30, 60]}},
            {"column": "channel", "values": ["web", "app"]},
            {"cross": ["country", "channel"]},
        ]
    )
    assert cuts_of(short) == cuts_of(long)
    assert crossings_of(short) == crossings_of(long) == (("country", "channel"),)
    country, age, channel = cuts_of(short)
    assert (country.fixed, country.room) == (None, 10)
    assert age.fixed == ("below 0", "0-30", "30-60", "60 and more")
    assert (channel.fixed, channel.room) == (("web", "app"), 4)


def test_values_are_read_as_the_log_writes_them() -> None:
    (cut,) = cuts_of(monitor([{"flag": {"values": [True, 12, 1.5, "DE", "other"]}}]))
    assert cut.fixed == ("true", "12", "1.5", "DE", '"other"')


def test_variables_and_the_predicted_class_are_told_from_columns() -> None:
    kinds = {cut.name: cut.of for cut in cuts_of(monitor(["prediction", {"confidence": [0.1]}, "country"]))}
    assert kinds == {"prediction": "prediction", "confidence": "variable", "country": "column"}


def test_a_column_that_is_only_crossed_has_no_slices_of_its_own() -> None:
    crossed = monitor([["country", "channel"]])
    assert [(cut.name, cut.crossed) for cut in cuts_of(crossed)] == [("country", False), ("channel", False)]


@pytest.mark.parametrize(
    ("slices", "says"),
    [
        ([{"age": [60, 30]}], "must be numbers that grow, such as [30, 60]"),
        ([{"age": []}], "takes edges such as [0, 30, 60]"),
        ([{"age": 3}], "takes edges such as [0, 30, 60]"),
        ([{"country": {"valeus": ["DE"]}}], "did you mean 'values'"),
        ([{"country": {"values": ["DE", "DE"]}}], "'DE' is there twice"),
        ([{"country": {"values": [f"v{k}" for k in range(51)]}}], "must be 50 at most; got 51"),
        ([{"country": {"values": ["DE"], "edges": [1]}}], "give values or edges, not both"),
        ([["country"]], "two or three different columns"),
        (["country", "country"], "'country' is listed twice"),
        (["input_id"], "is the inputs' id, another one for each"),
        (["confidence"], "'confidence' is a number: give edges that cut it"),
        ([{"prediction": [0.5]}], "the predicted class is no number"),
        ([f"column{k}" for k in range(11)], "these are up to 110 slices, and 100 are the most"),
        ([{"values": ["DE"]}], "must say of which column"),
    ],
)
def test_what_cannot_be_a_slice_is_refused(slices: object, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        monitor(slices)
    assert says in str(caught.value)


def test_the_truth_is_no_slice() -> None:
    with pytest.raises(ConfigError, match="'outcome' is the truth, which is not known of all inputs"):
        monitor(["outcome"], truth={"column": "outcome"})
    with pytest.raises(ConfigError, match="'colour' is none of the classes, which are: red, green"):
        monitor([{"prediction": ["colour"]}], classes=["red", "green"])


def test_promises_that_cannot_be_kept_are_refused() -> None:
    promising = [{"country": {"values": ["DE"], "at_least": 30}}]
    assert cuts_of(monitor(promising))[0].at_least == 30
    with pytest.raises(ConfigError, match=r"the sampler 'sups' cannot do that .*the samplers that can: adaptive, srs"):
        monitor(promising, sampler={"type": "sups", "variable": "confidence", "budget": 100})
    with pytest.raises(ConfigError, match="the sampler 'srs' cannot do that"):
        monitor(promising, sampler={"type": "srs", "replacement": True, "budget": 100})
    with pytest.raises(ConfigError, match=r"promises up to 90 of the 100 labels .* raise sampler\.budget to 113"):
        monitor([{"country": {"values": ["DE", "FR", "US"], "at_least": 30}}])


def test_the_prediction_of_several_labels_is_no_slice() -> None:
    with pytest.raises(ConfigError, match="several may be predicted: leave it out"):
        monitor(["country", "prediction"], problem="multilabel", classes=["red", "green"])
