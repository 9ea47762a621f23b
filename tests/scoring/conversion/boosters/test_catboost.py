"""What CatBoost writes as ONNX answers as CatBoost does; the files are described in ``data/README.md``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring.conversion.boosters.asking import answers_of_file
from opmon.scoring.conversion.boosters.from_catboost import finished
from opmon.scoring.conversion.converting import convert
from opmon.scoring.conversion.original import answers_of
from tests.scoring.conversion.boosters.test_trees import answers

DATA = Path(__file__).with_name("data")
TOLD = json.loads((DATA / "catboost_answers.json").read_text())


@pytest.mark.parametrize("single", [True, False])
def test_answers_are_given_where_catboost_gives_their_logarithm(single: bool) -> None:
    data = finished((DATA / "catboost_poisson.onnx").read_bytes(), "Poisson", single)
    (given,) = answers(data, np.array(TOLD["rows"]))
    np.testing.assert_allclose(given.reshape(-1), TOLD["counts"], rtol=1e-5)


@pytest.mark.parametrize("single", [True, False])
def test_a_classifier_gives_its_words(single: bool) -> None:
    data = finished((DATA / "catboost_words.onnx").read_bytes(), "Logloss", single)
    assert list(answers(data, np.array(TOLD["rows"]))[0]) == TOLD["words"]


def test_without_catboost_its_file_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    file = ModelFile("catboost", "CatBoostClassifier", tmp_path / "model.cbm")
    with pytest.raises(ModelError, match="catboost is not installed here, and its file is read by it: run pip install"):
        convert(file)
    for ask in (answers_of_file, lambda file, rows: answers_of(file, {"X": rows})):
        with pytest.raises(ModelError, match="catboost is not installed here: run pip install catboost"):
            ask(file, np.zeros((1, 3)))
