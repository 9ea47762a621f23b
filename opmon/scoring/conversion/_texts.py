"""Converters of text that count words as scikit-learn does: by its pattern, and with its logarithm of a count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon.scoring.conversion._parts import parts_of
from opmon.scoring.conversion._trees import Options
from opmon.scoring.conversion._writing import Converter

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope, Variable
    from sklearn.base import BaseEstimator
_DEFAULT = r"(?u)\b\w\w+\b"
_SPOKEN = r"[\p{L}\p{N}_]{2,}"
"""To RE2 ``\\w`` and ``\\b`` know no letters beyond a to z; skl2onnx writes ``[a-zA-Z0-9_]+``, which is not it."""


def spoken_patterns(model: BaseEstimator) -> Options:
    """The options of skl2onnx for the parts of a model that cut text by scikit-learn's own pattern."""
    from sklearn.feature_extraction.text import CountVectorizer

    return {
        id(part): {"tokenexp": _SPOKEN}
        for part in parts_of(model)
        if isinstance(part, CountVectorizer) and part.analyzer == "word" and part.token_pattern == _DEFAULT
    }


def text_converters() -> dict[type, Converter]:
    """The converters of weighted counts of words that take the place of skl2onnx's own."""
    from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

    return {TfidfTransformer: _convert, TfidfVectorizer: _convert}


def _convert(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    """Take 1 + log n of a count n above zero; skl2onnx takes log(1 + n)."""
    from skl2onnx.common._registration import get_converter

    write, weights = get_converter(operator.type), operator.raw_operator
    if operator.type != "SklearnTfidfTransformer" or not weights.sublinear_tf:
        write(scope, operator, container)
        return
    given = operator.inputs[0]
    operator.inputs.set_element(0, _logarithm(scope, container, given))
    weights.sublinear_tf = False
    try:
        write(scope, operator, container)
    finally:
        weights.sublinear_tf = True
        operator.inputs.set_element(0, given)


def _logarithm(scope: Scope, container: ModelComponentContainer, counts: Variable) -> Variable:
    """log max(n, 1) + sign n, a variable like ``counts``."""
    from skl2onnx.common.data_types import guess_proto_type

    made = scope.declare_local_variable("logarithm", type(counts.type)(counts.type.shape))
    name = {part: scope.get_unique_variable_name(part) for part in ("one", "above", "log", "sign")}
    container.add_initializer(name["one"], guess_proto_type(counts.type), [1], [1.0])
    for kind, inputs, output in (
        ("Max", [counts.full_name, name["one"]], name["above"]),
        ("Log", [name["above"]], name["log"]),
        ("Sign", [counts.full_name], name["sign"]),
        ("Add", [name["log"], name["sign"]], made.full_name),
    ):
        container.add_node(kind, inputs, [output], name=scope.get_unique_operator_name(kind))
    return made
