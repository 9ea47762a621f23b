"""The steps of a pipeline that are given a sparse matrix: what such a matrix leaves out is missing to XGBoost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from opmon.scoring.conversion._parts import held_by

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
IsSparse: TypeAlias = bool | None
"""None: not known."""


def takes_sparse(model: BaseEstimator, part: BaseEstimator) -> IsSparse:
    """Whether the input of ``part`` of a fitted model is a sparse matrix; of a model itself it is none."""
    return next((sparse for found, sparse in _inputs(model, False) if found is part), None)


def _inputs(model: object, sparse: IsSparse) -> Iterator[tuple[object, IsSparse]]:
    """A model and those inside of it that predict, each with whether its input is sparse."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import StackingClassifier, StackingRegressor
    from sklearn.pipeline import FeatureUnion, Pipeline

    yield model, sparse
    if isinstance(model, Pipeline):
        for _, step in model.steps:
            yield from _inputs(step, sparse)
            sparse = _output(step, sparse)
    elif isinstance(model, StackingClassifier | StackingRegressor) and hasattr(model, "final_estimator_"):
        for part in model.estimators_:
            yield from _inputs(part, sparse)
        yield from _inputs(model.final_estimator_, sparse if model.passthrough else False)
    elif not isinstance(model, ColumnTransformer | FeatureUnion):
        for part in _inside(model):
            yield from _inputs(part, sparse)


def _inside(model: object) -> Iterator[BaseEstimator]:
    """The estimators that an ensemble, a search or the like gives its own input."""
    from sklearn.base import BaseEstimator

    waiting = list(held_by(model))
    while waiting:
        item = waiting.pop()
        if isinstance(item, BaseEstimator):
            yield item
        else:
            waiting += held_by(item)


def _output(step: object, given: IsSparse) -> IsSparse:
    """Whether a step gives a sparse matrix where it is given one, or none."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline
    from sklearn.preprocessing import KBinsDiscretizer

    if isinstance(step, ColumnTransformer):
        fitted = getattr(step, "sparse_output_", None)  # a search keeps one that is not fitted beside that which is
        return None if fitted is None else bool(fitted)
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            given = _output(inner, given)
        return given
    if isinstance(step, FeatureUnion):
        parts = [_output(part, given) for _, part in step.transformer_list if part != "drop"]
        return True if True in parts else None if None in parts else False
    if isinstance(step, KBinsDiscretizer):
        return bool(step.encode == "onehot")
    if step is None or isinstance(step, str):  # passthrough
        return given
    said = getattr(step, "sparse_output", getattr(step, "sparse", None))
    if isinstance(said, bool):
        return said
    return _of_text(step) or (_as_given(step) if given else given)


def _of_text(step: object) -> bool:
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer

    return isinstance(step, CountVectorizer | HashingVectorizer | TfidfTransformer | FeatureHasher)


def _as_given(step: object) -> IsSparse:
    """Whether a step that is given a sparse matrix gives one, in which the same are left out."""
    from sklearn.decomposition import NMF, PCA, LatentDirichletAllocation, TruncatedSVD
    from sklearn.feature_selection import SelectorMixin
    from sklearn.preprocessing import Binarizer, MaxAbsScaler, Normalizer, RobustScaler, StandardScaler

    if isinstance(step, StandardScaler | RobustScaler | MaxAbsScaler | Normalizer | Binarizer | SelectorMixin):
        return True
    return False if isinstance(step, TruncatedSVD | PCA | NMF | LatentDirichletAllocation) else None
