"""What production logged of its own answers is found by name, type and value."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import InputError
from opmon.scoring.session import Tensor
from opmon.setup.by_log import by_log
from opmon.setup.choice import nested
from opmon.setup.inputs import fits_graph
from opmon.setup.log import Log

RNG = np.random.default_rng(0)
RISK = RNG.random(200)
WORDS = np.where(RISK > 0.5, "default", "paid")


def log(**columns: Any) -> Log:
    return Log(pa.table(columns), 200)


def found(**columns: Any) -> dict[str, Any]:
    return nested(by_log(log(**columns))[0])


def test_a_column_for_each_class_names_it() -> None:
    given = found(answer=WORDS, p_paid=1 - RISK, p_default=RISK)
    assert given["columns"] == {"prediction": "answer", "scores": ["p_paid", "p_default"]}
    assert given["classes"] == ["paid", "default"]


def test_fields_of_a_struct_name_the_classes() -> None:
    scores = [{"paid": 1 - risk, "default": risk} for risk in RISK]
    assert found(answer=WORDS, scores=scores)["classes"] == ["paid", "default"]


def test_one_score_is_that_of_the_class_which_is_answered_where_it_is_high() -> None:
    assert found(decision=WORDS, score=RISK)["classes"] == ["paid", "default"]
    assert found(decision=WORDS, score=1 - RISK)["classes"] == ["default", "paid"]


def test_a_score_alone_needs_a_threshold_that_is_guessed() -> None:
    choices, taken = by_log(log(prediction=RISK))
    (threshold,) = [choice for choice in choices if choice.key == ("columns", "threshold")]
    assert (threshold.value, threshold.guessed, taken) == (0.5, True, ("prediction",))


def test_scores_without_a_name_are_known_by_their_sum() -> None:
    third = np.full(200, 0.25)
    given = found(answer=WORDS, amount=3 * RISK, a=(1 - RISK) * 0.75, b=RISK * 0.75, c=third, noise=RNG.random(200))
    assert given["columns"] == {"prediction": "answer", "scores": ["a", "b", "c"]}
    assert found(answer=WORDS, amount=3 * RISK)["columns"] == {"prediction": "answer"}
    given = found(p0=1 - RISK, p1=RISK)
    assert (given["columns"], given["classes"]) == ({"scores": ["p0", "p1"]}, ["p0", "p1"])


def test_numbers_are_a_regression_and_a_few_whole_ones_classes() -> None:
    assert found(predicted_price=100 * RISK)["problem"] == "regression"
    given = found(predicted=(10 * RISK).astype(int))
    assert (given["problem"], given["classes"][:3], len(given["classes"])) == ("classification", ["0", "1", "2"], 10)


@pytest.mark.parametrize("empty", [pa.nulls(200), [""] * 200, [np.nan] * 200])
def test_a_column_that_holds_nothing_is_no_answer(empty: Any) -> None:
    given = found(result=empty, prediction=WORDS, scores=np.stack([1 - RISK, RISK], axis=1).tolist())
    assert given["columns"] == {"prediction": "prediction", "scores": ["scores"]}
    assert given["classes"] == ["paid", "default"]
    sentences = [f"this is what was said to number {k}" for k in range(200)]
    assert found(category=empty, reply=sentences)["problem"] == "judged"
    with pytest.raises(InputError, match="no column that is called like production's answers"):
        by_log(log(prediction=empty))


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_holes_in_columns_of_numbers_are_no_values(hole: float) -> None:
    """As pandas writes them to Parquet: in what the model takes, in scores and in answers."""
    holes = np.where(np.arange(200) % 9 == 0, hole, RISK)
    assert found(answer=WORDS, age=holes)["columns"] == {"prediction": "answer"}
    assert found(answer=WORDS, score=holes)["classes"] == ["paid", "default"]
    assert found(predicted_price=100 * holes)["problem"] == "regression"
    assert found(prediction=holes)["columns"]["threshold"] == 0.5
    assert found(prediction=np.where(np.isfinite(holes), RISK > 0.5, hole))["classes"] == ["0", "1"]


def test_a_truth_is_no_answer() -> None:
    with pytest.raises(InputError, match="no column that is called like production's answers"):
        by_log(log(label=WORDS, y_true=WORDS))


def test_pictures_are_found_by_their_bytes_or_their_paths(tmp_path: Path) -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(file.getvalue())
    takes = [Tensor("input", "float", (None, 3, 8, 8))]
    encoded, paths = log(photo=[file.getvalue()]), log(file=["photos/a.png"])
    (fit,) = fits_graph(takes, None, encoded, str(tmp_path))
    assert nested(fit.choices)["inputs"]["image"]["column"] == "photo"
    (fit,) = fits_graph(takes, None, paths, str(tmp_path / "photos" / "log.parquet"))
    assert nested(fit.choices)["inputs"]["image"]["folder"] == str(tmp_path)
    urls = log(file=["s3://shop/day=1/a.png", None, "s3://shop/day=2/in/b.png"])
    (fit,) = fits_graph(takes, None, urls, str(tmp_path))
    assert nested(fit.choices)["inputs"]["image"]["folder"] == "s3://shop"
    strangers = log(file=["s3://shop/a.png", "s3://other/b.png"])
    assert list(fits_graph(takes, None, strangers, str(tmp_path))) == []
