"""LightGBM's own file, which is text, as trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.conversion.boosters.ensemble import Ensemble, Link, Tree
from opmon.types import Array

_LINKS: dict[str, Link] = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "value"),
    **dict.fromkeys(("lambdarank", "rank_xendcg", "custom"), "value"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    "cross_entropy": "share",
    "cross_entropy_lambda": "log1p_exp",
    "binary": "sigmoid",
    "multiclass": "softmax",
    "multiclassova": "each",
}  # fmt: skip
_CATEGORY, _LEFT = 1, 2
_NONE, _ZERO = 0, 1
"""The values that a split takes for missing: nothing, or zero; else NaN."""


def from_text(text: str, classes: Sequence[int | str] | None = None) -> Ensemble:
    """The model in the text of LightGBM's file; ``classes`` are their names where they are not the first numbers."""
    try:
        return _ensemble(text, classes)
    except (KeyError, IndexError, ValueError, TypeError) as exc:
        message = f"the LightGBM file cannot be read ({type(exc).__name__}: {exc}); log the model again"
        raise ModelError(message) from exc


def _ensemble(text: str, classes: Sequence[int | str] | None) -> Ensemble:
    head, *blocks = text.partition("end of trees")[0].split("\nTree=")
    keys, (objective, *options) = _keys(head), _keys(head).get("objective", "custom").split()
    link = _LINKS.get(objective)
    if link is None or (objective == "custom" and classes is not None):
        raise ModelError(f"its objective {objective!r} is none that opmon converts: {', '.join(_LINKS)}")
    if "sqrt" in options:
        link = "square"
    groups = int(keys["num_tree_per_iteration"])
    if groups > 1 and link not in ("softmax", "each"):
        raise ModelError(f"it gives {groups} numbers for each input, and a monitor watches one")
    steep = next((float(option.partition(":")[2]) for option in options if option.startswith("sigmoid:")), 1.0)
    trees = [_tree(_keys(block), number % groups, steep) for number, block in enumerate(blocks)]
    names = {"sigmoid": range(2), "softmax": range(groups), "each": range(groups)}.get(link)
    if names is not None and classes is not None and len(classes) != len(names):
        raise ModelError(f"it has {len(names)} classes, and {len(classes)} names of them")
    return Ensemble(
        trees,
        int(keys["max_feature_idx"]) + 1,
        (0.0,) * groups,
        link,
        "BRANCH_LEQ",
        single=False,
        classes=None if names is None else list(classes if classes is not None else names),
        divided_by=len(blocks) // groups if "average_output" in head.split() else 1,
    )


def _keys(block: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _tree(keys: Mapping[str, str], target: int, steep: float) -> Tree:
    def numbers(key: str, kind: type[np.generic]) -> Array:
        return np.array(keys.get(key, "").split(), np.float64).astype(kind)

    if keys.get("is_linear", "0") != "0":
        raise ModelError("its leaves are linear models, which opmon does not convert")
    values, decisions = numbers("leaf_value", np.float64) * steep, numbers("decision_type", np.int64)
    if (decisions & _CATEGORY).any():
        raise ModelError("its trees split by categories, which opmon does not convert")
    thresholds, inner = numbers("threshold", np.float64), len(decisions)
    if len(values) != inner + 1:
        raise ModelError(f"a tree of the model has {inner} splits and {len(values)} leaves; log the model again")
    left, right = (_places(numbers(key, np.int64), inner) for key in ("left_child", "right_child"))
    leaves = np.full(len(values), -1)
    return Tree(
        np.concatenate([numbers("split_feature", np.int64), leaves]),
        np.concatenate([thresholds, np.zeros(len(values))]),
        np.concatenate([left, leaves]),
        np.concatenate([right, leaves]),
        np.concatenate([_missing_left(decisions, thresholds), np.zeros(len(values), bool)]),
        np.concatenate([np.zeros(inner), values]),
        target,
    )


def _places(children: Array, inner: int) -> Array:
    """The places of children: leaves, which LightGBM counts from -1 down, lie behind the splits."""
    return np.where(children >= 0, children, inner - 1 - children)


def _missing_left(decisions: Array, thresholds: Array) -> NDArray[np.bool_]:
    """Whether NaN goes left: as the split says, or as zero where it takes NaN for that."""
    said, zero = (decisions & _LEFT) > 0, thresholds >= 0
    missing = (decisions >> 2) & 3
    if ((missing == _ZERO) & (said != zero)).any():
        raise ModelError("it takes zero for missing (zero_as_missing), which opmon does not convert")
    return np.where(missing == _NONE, zero, said)
