"""Ensembles of trees that are summed, as XGBoost and LightGBM have them, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opmon.errors import ModelError
from opmon.types import Array

Link = Literal["value", "share", "sigmoid", "softmax", "each", "exp", "log1p_exp", "square"]
"""The answer that a sum becomes: itself; a number between 0 and 1; the probability of the second of two classes; one
for each class, which sum to one or not; e to it; log(1 + e to it); its square with its sign."""
Rule = Literal["BRANCH_LT", "BRANCH_LEQ"]


@dataclass(frozen=True)
class Tree:
    """One tree, node by node, the root first. ``left`` is below 0 at a leaf."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    target: int
    """The number of the sum that it belongs to."""

    def reached(self) -> NDArray[np.int64]:
        """The nodes below the root, each once; an error where they are no tree."""
        order, waiting, seen = [], [0], set()
        while waiting:
            node = waiting.pop()
            if not 0 <= node < len(self.left) or node in seen:
                raise ModelError(f"a tree of the model is broken at node {node}; log the model again")
            seen.add(node)
            order.append(node)
            if self.left[node] >= 0:
                waiting += [int(self.right[node]), int(self.left[node])]
        return np.array(sorted(order), np.int64)


@dataclass(frozen=True)
class Ensemble:
    """Sums of trees. ``rule`` says which values go left; ``single``: they are compared in float32."""

    trees: Sequence[Tree]
    features: int
    base: tuple[float, ...]
    """The number that each sum begins with."""
    link: Link
    rule: Rule
    single: bool
    classes: Sequence[int | str] | None = None
    """The names of the classes, where it answers with one of them: numbers or texts."""
    divided_by: int = 1

    def attributes(self, double: bool) -> dict[str, object]:
        """The trees as attributes of ``TreeEnsembleRegressor``, for inputs in float64 or float32."""
        kind = np.float64 if double else np.float32
        nodes: dict[str, list[Array]] = {
            name: []
            for name in ("treeids", "nodeids", "featureids", "values", "truenodeids", "falsenodeids", "modes", "nan")
        }
        leaves: dict[str, list[Array]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        for number, tree in enumerate(self.trees):
            at = tree.reached()
            self._check(tree, at)
            leaf = tree.left[at] < 0
            nodes["treeids"].append(np.full(len(at), number))
            nodes["nodeids"].append(at)
            nodes["featureids"].append(np.where(leaf, 0, tree.feature[at]))
            nodes["values"].append(np.where(leaf, 0.0, self._thresholds(tree.threshold[at], double)))
            nodes["truenodeids"].append(np.where(leaf, 0, tree.left[at]))
            nodes["falsenodeids"].append(np.where(leaf, 0, tree.right[at]))
            nodes["nan"].append(np.where(leaf, 0, tree.missing_left[at]))
            nodes["modes"].append(np.where(leaf, "LEAF", self.rule))
            leaves["treeids"].append(np.full(leaf.sum(), number))
            leaves["nodeids"].append(at[leaf])
            leaves["ids"].append(np.full(leaf.sum(), tree.target))
            leaves["weights"].append(tree.value[at[leaf]] / self.divided_by)
        lists = {f"nodes_{name}": np.concatenate(values).tolist() for name, values in nodes.items() if name != "nan"}
        lists["nodes_missing_value_tracks_true"] = np.concatenate(nodes["nan"]).astype(int).tolist()
        lists |= {f"target_{name}": np.concatenate(values).tolist() for name, values in leaves.items()}
        numbers = {
            "nodes_values": lists.pop("nodes_values"),
            "target_weights": lists.pop("target_weights"),
            "base_values": self.base,
        }
        return {**lists, **_numbers(numbers, kind, double), "n_targets": len(self.base)}

    def _thresholds(self, values: NDArray[np.float64], double: bool) -> NDArray[np.float64]:
        """Thresholds that divide the inputs alike: in float32 the last number that is not above each of them."""
        if double or self.rule == "BRANCH_LT":  # these were in float32 already
            return values
        with np.errstate(over="ignore"):
            near = np.clip(values, -np.finfo(np.float32).max, np.finfo(np.float32).max).astype(np.float32)
        return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)

    def _check(self, tree: Tree, at: NDArray[np.int64]) -> None:
        used = tree.feature[at][tree.left[at] >= 0]
        if len(used) and not (used.min() >= 0 and used.max() < self.features):
            raise ModelError(f"a tree of the model asks for input {used.max()}, and there are {self.features}")


def _numbers(values: Mapping[str, ArrayLike], kind: type[np.floating], double: bool) -> dict[str, object]:
    from onnx import numpy_helper

    if not double:
        return {name: np.asarray(numbers, kind).tolist() for name, numbers in values.items()}
    arrays = {name: np.asarray(numbers, kind) for name, numbers in values.items()}
    return {f"{name}_as_tensor": numpy_helper.from_array(array, name) for name, array in arrays.items()}
