"""The parts of a scikit-learn model: the estimators inside of pipelines, searches and ensembles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def parts_of(model: BaseEstimator) -> Iterator[BaseEstimator]:
    """The model and all estimators in it, however deep."""
    from sklearn.base import BaseEstimator

    waiting: list[object] = [model]
    seen: dict[int, object] = {}
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, BaseEstimator):
            yield item
        waiting += held_by(item)


def held_by(item: object) -> Iterable[object]:
    """The things right inside of an estimator, or of what estimators keep others in."""
    from sklearn.base import BaseEstimator

    if isinstance(item, BaseEstimator) or type(item).__name__ == "_CalibratedClassifier":
        return vars(item).values()
    if isinstance(item, Mapping):
        return [value for value in item.values() if not isinstance(value, int | float | str)]
    return item if isinstance(item, list | tuple) else ()


def takes_text(model: BaseEstimator) -> bool:
    """Whether the input of a model is a text and not a table: the first thing it does is to cut it into words."""
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(model, Pipeline):
        return takes_text(model.steps[0][1])
    if isinstance(model, FeatureUnion):
        return all(takes_text(part) for _, part in model.transformer_list)
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        return takes_text(model.best_estimator_)
    return isinstance(model, CountVectorizer | HashingVectorizer)
