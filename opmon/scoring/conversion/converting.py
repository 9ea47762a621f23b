"""Converting a scikit-learn model, boosted trees or a network to ONNX, so that ONNX Runtime loads what comes out."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from opmon.abc import ModelFile, Network
from opmon.errors import ModelError
from opmon.scoring._failures import first_line
from opmon.scoring.conversion._categories import category_converters, word_for_missing
from opmon.scoring.conversion._inputs import Inputs, possible_inputs
from opmon.scoring.conversion._parts import parts_of
from opmon.scoring.conversion._texts import spoken_patterns, text_converters
from opmon.scoring.conversion._trees import Options, tree_converters
from opmon.scoring.conversion.boosters.converting import convert_ensemble, convert_file
from opmon.scoring.conversion.boosters.in_pipelines import boosted_converters, ensemble_of, is_boosted, teach
from opmon.scoring.conversion.network import exported
from opmon.scoring.graph.adapting import adapted
from opmon.scoring.graph.file import MISSING_TEXT
from opmon.scoring.session import open_session
from opmon.types import Signature
from opmon.values import canonical_class

if TYPE_CHECKING:
    from onnx import ModelProto
    from sklearn.base import BaseEstimator
OPSET = {"": 18, "ai.onnx.ml": 3}
_LONGEST = 160
"""The most characters of a reason that are shown."""
_log = logging.getLogger(__name__)


def convert(model: object, signature: Signature | None = None) -> bytes:
    """The model as ONNX; a classifier has ``label`` and a matrix ``probabilities``, and its classes as metadata.

    ``model`` is loaded, or the file of one that is data, or a network, whose outputs stay what they are.
    """
    if isinstance(model, Network):
        return _run_once("this PyTorch model", lambda: exported(model))
    if isinstance(model, ModelFile):
        return _run_once(model.kind, lambda: convert_file(model, signature))
    if is_boosted(model):
        return _run_once(type(model).__name__, lambda: convert_ensemble(ensemble_of(model), signature))
    estimator = _required(model)
    teach(estimator)
    _settle(estimator)
    _require_half(estimator)
    reason = "nothing is known of its inputs"
    for inputs in possible_inputs(estimator, signature):
        try:
            data = _described(_graph(estimator, inputs), estimator)
            open_session(_as_run(data), "cpu", 1)
        except Exception as exc:  # noqa: BLE001 - skl2onnx raises whatever its converters raise
            reason = _short(exc)
            _log.debug("%s with inputs %s", type(model).__name__, inputs, exc_info=True)
        else:
            return data
    raise ModelError(
        f"{type(model).__name__} cannot be converted to ONNX: {reason.rstrip('.')}. Register it as ONNX "
        f"(mlflow.onnx.log_model), exported by a library that knows it."
    )


def _run_once(kind: str, made: Callable[[], bytes]) -> bytes:
    """What is made of boosted trees of a class, or of a network, where it runs; or why it is not."""
    try:
        data = made()
        open_session(_as_run(data), "cpu", 1)
    except ModuleNotFoundError as exc:
        reason = f"{exc.name} is not installed here, and its file is read by it: run pip install {exc.name}"
        raise _not_converted(kind, reason) from exc
    except (ModelError, OSError, ValueError) as exc:
        raise _not_converted(kind, _short(exc)) from exc
    return data


def _not_converted(kind: str, reason: str) -> ModelError:
    return ModelError(
        f"{kind.rpartition('.')[2]} cannot be converted to ONNX: {reason.rstrip('.')}. Let the model itself answer "
        f"(scoring: {{by: flavor, trust: true}}), or register it as ONNX (mlflow.onnx.log_model)."
    )


def _short(exc: Exception) -> str:
    """The reason in a line: what skl2onnx says of a large model is as large as the model."""
    root = exc.__cause__ if isinstance(exc.__cause__, Exception) else exc
    text = str(root) if isinstance(root, ModelError) else f"{type(root).__name__}: {first_line(root)}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _required(model: object) -> BaseEstimator:
    """The model, which must be an estimator of scikit-learn."""
    from sklearn.base import BaseEstimator

    if not isinstance(model, BaseEstimator) or not hasattr(model, "predict"):
        raise ModelError(
            f"what is logged as a scikit-learn model is a {type(model).__module__}.{type(model).__qualname__}, which "
            f"is no estimator that predicts: register the model as ONNX (mlflow.onnx.log_model)"
        )
    return model


def _settle(model: BaseEstimator) -> None:
    """Change settings that have no part in predictions and that skl2onnx does not take."""
    from sklearn.ensemble import VotingClassifier

    for part in parts_of(model):
        if isinstance(part, VotingClassifier):
            part.flatten_transform = False


def _require_half(model: BaseEstimator) -> None:
    """An error where a classifier answers by a threshold of its own: in skl2onnx's graph it would be a half."""
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    for part in parts_of(model):
        if isinstance(part, FixedThresholdClassifier | TunedThresholdClassifierCV):
            raise ModelError(
                f"{type(part).__name__} cannot be converted to ONNX: it answers by a threshold of its own, which the "
                f"graph would leave out. Let the model itself answer (scoring: {{by: flavor, trust: true}})."
            )


def _graph(model: BaseEstimator, inputs: Inputs) -> ModelProto:
    from skl2onnx import convert_sklearn
    from skl2onnx.common._registration import get_converter
    from sklearn.base import is_classifier

    own = {**tree_converters(), **text_converters(), **category_converters(word_for_missing(model))}
    own |= boosted_converters(model)

    def converted(options: Options) -> ModelProto:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph: ModelProto = convert_sklearn(
                model,
                initial_types=inputs,
                options=options,
                target_opset=OPSET,
                custom_conversion_functions=own,
            )
            return graph

    get_converter("SklearnLinearSVC").get_allowed_options().setdefault("zipmap", [True, False])  # it is asked for it
    patterns = spoken_patterns(model)
    if not is_classifier(model):
        return converted(patterns)
    try:
        return converted({**patterns, id(model): {"zipmap": False}})
    except NameError:  # a classifier that has no such option gives no dictionaries
        return converted(patterns)


def _described(graph: ModelProto, model: BaseEstimator) -> bytes:
    """The file of a graph; its metadata has the classes, what the scores are, and the word for a missing text."""
    from sklearn.base import is_classifier

    classes = getattr(model, "classes_", None)
    metadata: dict[str, str] = {}
    if is_classifier(model) and classes is not None and getattr(classes, "ndim", 0) == 1:
        metadata["classes"] = json.dumps([canonical_class(name) for name in classes.tolist()])
        if not hasattr(model, "predict_proba"):
            metadata["scores"] = "logits"
    word = word_for_missing(model)
    if word is not None:
        metadata[MISSING_TEXT] = word
    for key, value in metadata.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    _type_labels(graph)
    return graph.SerializeToString()


def _type_labels(graph: ModelProto) -> None:
    """Declare label outputs that are numbers of columns as numbers: skl2onnx declares names for one against one."""
    import onnx

    made_by = {name: node.op_type for node in graph.graph.node for name in node.output}
    for output in graph.graph.output:
        if made_by.get(output.name) == "ArgMax":
            output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, onnx.TensorProto.INT64, [None, 1]))


def _as_run(data: bytes) -> bytes:
    import onnx

    changed = adapted(onnx.load_from_string(data))
    return data if changed is None else changed.SerializeToString()
