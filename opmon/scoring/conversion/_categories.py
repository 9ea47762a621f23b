"""Converters of encoders that know a missing text: it has a word in the graph, which the file's metadata names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import ModelError
from opmon.scoring.conversion._parts import parts_of
from opmon.scoring.conversion._writing import Converter, written_by

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope
    from sklearn.base import BaseEstimator
_WORD = "<missing>"


def word_for_missing(model: BaseEstimator) -> str | None:
    """A word that no encoder in the model knows, for the texts that were missing when they learned; None: none were."""
    known = list(_known(model))
    if not any(map(_is_missing, known)):
        return None
    word = _WORD
    while word in known:
        word = f"<{word}>"
    return word


def missing_text(model: BaseEstimator) -> float | None:
    """A missing text as the encoders in the model have met it: NaN, or None."""
    missing = [category for category in _known(model) if _is_missing(category)]
    return None if missing and all(category is None for category in missing) else math.nan


def category_converters(word: str | None) -> dict[type, Converter]:
    """The converters of encoders that take the place of skl2onnx's own; ``word`` is given for a missing text."""
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

    def convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
        from skl2onnx.common._registration import get_converter

        encoder, written = operator.raw_operator, operator.raw_operator.categories_
        with _numbered(encoder, container):
            encoder.categories_ = [_named(categories, word) for categories in written]
            try:
                get_converter(operator.type)(scope, operator, container)
            finally:
                encoder.categories_ = written

    return dict.fromkeys((OneHotEncoder, OrdinalEncoder, TargetEncoder), convert)


@contextmanager
def _numbered(encoder: BaseEstimator, container: ModelComponentContainer) -> Iterator[None]:
    """Let an encoder that numbers categories give missing and unknown ones the numbers that scikit-learn gives them."""
    from sklearn.preprocessing import OrdinalEncoder

    if not isinstance(encoder, OrdinalEncoder):
        yield
        return
    write = container.add_node
    missing = iter([_is_nan(categories[-1]) for categories in encoder.categories_ if len(categories)])

    def rewrite(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        if kind == "LabelEncoder":
            attributes = _with_numbers(encoder, next(missing), attributes)
        write(kind, inputs, outputs, **attributes)

    with written_by(container, rewrite):
        yield


def _with_numbers(encoder: BaseEstimator, misses: bool, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of one column's categories; with ``misses`` the last of them stands for what is missing."""
    kept = {name: value for name, value in attributes.items() if not name.startswith(("values_", "default_"))}
    numbers = next(value for name, value in attributes.items() if name.startswith("values_"))
    count = len(next(value for name, value in attributes.items() if name.startswith("keys_")))
    values = np.asarray(numbers, np.float32)
    if misses:
        values = np.append(values[: count - 1], np.float32(encoder.encoded_missing_value))
    unknown = {} if encoder.unknown_value is None else {"default_float": float(encoder.unknown_value)}
    return {**kept, "values_floats": values, **unknown}


def _known(model: BaseEstimator) -> Iterable[object]:
    """The categories of text that the encoders in the model know."""
    columns = chain.from_iterable(getattr(part, "categories_", ()) for part in parts_of(model) if _encodes(part))
    return chain.from_iterable(column.tolist() for column in columns if column.dtype.kind in "OUS")


def _encodes(part: BaseEstimator) -> bool:
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

    return isinstance(part, OneHotEncoder | OrdinalEncoder | TargetEncoder)


def _named(categories: NDArray[Any], word: str | None) -> NDArray[Any]:
    """Categories with the word for the one that is missing."""
    missing = [place for place, category in enumerate(categories.tolist()) if _is_missing(category)]
    if not missing or categories.dtype.kind != "O":
        return categories
    if len(missing) > 1:
        raise ModelError("it has both None and NaN among its categories, and a log has only one kind of missing value")
    named = categories.copy()
    named[missing] = word
    return named


def _is_missing(category: object) -> bool:
    return category is None or _is_nan(category)


def _is_nan(category: object) -> bool:
    return isinstance(category, float) and math.isnan(category)
