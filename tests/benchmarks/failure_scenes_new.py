"""More scenes of failure groups, on which the search was never tuned: texts, car loans, digits harmed of late."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tomography_data
from failure_scenes import NONE, Scene, Words, digits, of_table, scores
from numpy.typing import NDArray

from opmon.causes import text_features
from opmon.causes.features import Feature

_NEWS: dict[str, Any] = {}
_LOANS: dict[str, Any] = {}
CAR = "car_value", "salary_range", "debt_to_income_ratio", "loan_length", "repaid_loan_on_prev_car"
CAR = (*CAR, "size_of_downpayment", "driver_tenure")


def news(seed: int) -> Scene:
    """Articles of the BBC: cut after six words, with their words run together, or with letters swapped."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng([seed, 21])
    if not _NEWS:
        folder = tomography_data.bbc_news(None, tomography_data.cache_folder())
        files = sorted(folder.glob("*/*.txt"))
        texts = np.array([" ".join(f.read_text("utf-8", "replace").split()[:40]) for f in files], dtype=object)
        sections = np.array([file.parent.name for file in files], dtype=object)
        order = np.random.default_rng(0).permutation(len(texts))
        first, rest = order[:900], order[900:]
        model = make_pipeline(TfidfVectorizer(min_df=2, lowercase=False), LogisticRegression(C=10, max_iter=300))
        _NEWS.update(model=model.fit(texts[first], sections[first]), texts=texts[rest], truth=sections[rest])
    texts, truth, model = _NEWS["texts"].copy(), _NEWS["truth"], _NEWS["model"]
    size = len(texts)
    right = model.predict(texts) == truth
    harms = rng.choice([NONE, "cut", "run together", "shouted"], size, p=[0.55, 0.15, 0.15, 0.15]).astype(object)
    for at in np.flatnonzero(harms != NONE):
        texts[at] = _HARMS[harms[at]](texts[at])
    said, suspicion = scores(model, texts)

    def features(positions: NDArray[np.int64]) -> Sequence[Feature]:
        return text_features("text", list(texts[positions]))

    return Scene(harms, right, said, truth, suspicion, features, np.zeros(size, np.int64), 400)


_HARMS: Mapping[str, Callable[[str], str]] = {
    "cut": lambda text: " ".join(text.split()[:6]),
    "run together": lambda text: re.sub(r"\s+", "", text),
    "shouted": str.upper,
}


def loans(seed: int) -> Scene:
    """Applications for car loans: a debt ratio that is lost, a car's value in thousands, salaries in another band."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    rng = np.random.default_rng([seed, 22])
    if not _LOANS:
        folder = tomography_data.census(None, tomography_data.cache_folder())
        table = pd.read_csv(folder / "synthetic_car_loan_reference.csv")
        words = [name for name in CAR if not pd.api.types.is_numeric_dtype(table[name])]
        coding = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        model = make_pipeline(
            make_column_transformer((coding, words), remainder="passthrough"),
            HistGradientBoostingClassifier(random_state=0),
        )
        first = table.iloc[:25_000]
        _LOANS.update(model=model.fit(first[list(CAR)], first["repaid"]), table=table.iloc[25_000:])
    table, model = _LOANS["table"], _LOANS["model"]
    table = table.iloc[rng.permutation(len(table))[:6000]].reset_index(drop=True)
    rows, truth = table[list(CAR)].copy(), table["repaid"].to_numpy()
    right = model.predict(rows) == truth
    kind = rng.choice([0, 1, 2, 3], len(rows), p=[0.7, 0.1, 0.1, 0.1])
    harms: Words = np.array([NONE, "ratio is lost", "value in thousands", "salary unknown"], dtype=object)[kind]
    rows.loc[kind == 1, "debt_to_income_ratio"] = np.nan
    rows.loc[kind == 2, "car_value"] = rows["car_value"] / 1000
    rows.loc[kind == 3, "salary_range"] = "unknown"
    return of_table(rows, harms, right, *scores(model, rows), truth)


def later(seed: int) -> Scene:
    """Eight rounds of digits; since the fifth nearly half of them are turned, blurred or noisy."""
    return digits(seed, rounds=8)


NEW: Mapping[str, Callable[[int], Scene]] = {"news": news, "loans": loans, "later": later}
