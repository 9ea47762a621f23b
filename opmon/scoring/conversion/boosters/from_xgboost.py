"""XGBoost's own file, JSON or UBJSON, as trees."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from opmon.errors import ModelError
from opmon.scoring.conversion.boosters._ubjson import read_ubjson
from opmon.scoring.conversion.boosters.ensemble import Ensemble, Link, Tree
from opmon.types import Document

_LINKS: dict[str, Link] = {
    **dict.fromkeys(("reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:squaredlogerror"), "value"),
    **dict.fromkeys(("reg:pseudohubererror", "reg:quantileerror"), "value"),
    **dict.fromkeys(("rank:pairwise", "rank:ndcg", "rank:map"), "value"),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "exp"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax"),
    "reg:logistic": "share",
    "binary:logistic": "sigmoid",
}  # fmt: skip


def from_file(path: Path, kind: str) -> Ensemble:
    """The model in a file of XGBoost's. ``kind`` is its Python class: scikit-learn's stop at the best iteration."""
    data = path.read_bytes()
    binary = not data.lstrip()[:2].startswith(b"{\n") and not data.lstrip()[:2].startswith(b'{"')
    if not data.lstrip().startswith(b"{"):
        raise ModelError("it is in a format of XGBoost that is no longer written: log it again, with model_format ubj")
    return from_document(read_ubjson(data) if binary else json.loads(data), ".sklearn." in kind)


def from_document(document: Document, best: bool) -> Ensemble:
    """The model in XGBoost's JSON. ``best``: without the rounds after its best iteration."""
    try:
        return _ensemble(document["learner"], best)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as exc:
        raise ModelError(f"the XGBoost file cannot be read ({type(exc).__name__}: {exc}); log the model again") from exc


def _ensemble(learner: Document, best: bool) -> Ensemble:
    objective, sizes = str(learner["objective"]["name"]), learner["learner_model_param"]
    link, boosted = _LINKS.get(objective), learner["gradient_booster"]
    if link is None:
        raise ModelError(f"its objective {objective!r} is none that opmon converts: {', '.join(_LINKS)}")
    if boosted["name"] not in ("gbtree", "dart"):
        raise ModelError(f"its booster is {boosted['name']}, which has no trees")
    if int(sizes.get("num_target", 1)) > 1:
        raise ModelError(f"it gives {sizes['num_target']} numbers for each input, and a monitor watches one")
    weights = boosted.get("weight_drop")
    trees = boosted.get("gbtree", boosted)["model"]
    groups = max(int(sizes["num_class"]), 1)
    count = _rounds(trees, learner.get("attributes") or {}, best)
    counted = [
        _tree(tree, int(trees["tree_info"][number]), 1.0 if weights is None else float(weights[number]))
        for number, tree in enumerate(trees["trees"][:count])
    ]
    base = [_margin(value, link) for value in _base_scores(sizes["base_score"])]
    classes = {"sigmoid": range(2), "softmax": range(groups)}.get(link)
    return Ensemble(
        counted,
        int(sizes["num_feature"]),
        tuple(base if len(base) == groups else base * groups),
        link,
        "BRANCH_LT",
        single=True,
        classes=None if classes is None else list(classes),
    )


def _rounds(trees: Document, attributes: Document, best: bool) -> int:
    """The number of trees that count."""
    if not best or "best_iteration" not in attributes:
        return len(trees["trees"])
    return int(trees["iteration_indptr"][int(attributes["best_iteration"]) + 1])


def _base_scores(text: object) -> list[float]:
    """The base score of each sum.

    >>> _base_scores("5E-1"), _base_scores("[-9E-2,1.75E-1]")
    ([0.5], [-0.09, 0.175])
    """
    return [float(part) for part in str(text).strip("[]").split(",")]


def _margin(value: float, link: Link) -> float:
    """The number that is added to the sum for a base score, which is given as an answer."""
    if link in ("sigmoid", "share"):
        return math.log(value / (1 - value))
    return math.log(value) if link == "exp" else value


def _tree(tree: Document, target: int, weight: float) -> Tree:
    if np.any(tree.get("split_type", 0)):
        raise ModelError("its trees split by categories, which opmon does not convert")
    if int(tree["tree_param"].get("size_leaf_vector") or 1) > 1:
        raise ModelError("its leaves hold several numbers each, which opmon does not convert")
    values = np.asarray(tree["split_conditions"], np.float32).astype(np.float64)
    return Tree(
        np.asarray(tree["split_indices"], np.int64),
        values,
        np.asarray(tree["left_children"], np.int64),
        np.asarray(tree["right_children"], np.int64),
        np.asarray(tree["default_left"], bool),
        values * weight,
        target,
    )
