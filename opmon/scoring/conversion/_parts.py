"""What a scikit-learn model is made of: the estimators inside of pipelines, searches and ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def parts_of(model: Any) -> Iterator[Any]:
    """The model and all estimators in it, however deep."""
    from sklearn.base import BaseEstimator

    waiting, seen = [model], {}
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, BaseEstimator):
            yield item
            waiting += vars(item).values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, Mapping):
            waiting += [value for value in item.values() if not isinstance(value, int | float | str)]


def takes_text(model: Any) -> bool:
    """Whether the first thing that happens to an input is that it is cut into words: it is one text, and no table."""
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
