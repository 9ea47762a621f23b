"""The configuration for a registered model with an ONNX graph: its problem, and how the log feeds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from opmon.abc import ModelFile
from opmon.errors import ModelError, OpmonError
from opmon.scoring.graph.file import last_operator, read_model
from opmon.scoring.outputs.labels import KINDS
from opmon.scoring.scorer import Scorer
from opmon.setup.choice import Choice
from opmon.setup.inputs import Fit, fits_graph
from opmon.setup.roles import is_answer
from opmon.setup.world import Answers, World
from opmon.stages.models import model_file, reading_of
from opmon.stages.originals import BOOSTERS, CODE, agreement, has_original
from opmon.types import Array

_REGRESSORS = frozenset({"LinearRegressor", "TreeEnsembleRegressor", "SVMRegressor"})
_LIBRARIES = {
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "pytorch": "PyTorch",
}
_YES_OR_NO = frozenset({"Sigmoid", "HardSigmoid", "Softmax", "Normalizer"})

Found = tuple[list[Choice], Fit, Answers]


def by_onnx(world: World, convert: bool) -> Found:
    """The keys of a monitor that runs the ONNX graph, or the one that another model is converted to."""
    pickled = convert and _pickled(world)
    network = pickled and "sklearn" not in world.model.flavors and "pytorch" in world.model.flavors
    way = {"by": "onnx", "trust": True} if network else {"by": "onnx"}
    base = [Choice(("scoring",), way, _why(world, convert, pickled))]
    if pickled and not network:
        base.append(Choice(("convert_sklearn",), True, "runs the code in the model, as --trust allows"))
    path = model_file(world.settings(base), world.registry, world.model, world.folder)
    plain = Scorer.open(path, "regression", device="cpu") if not _labels(path) else None
    takes = (plain or Scorer.open(path, "classification", device="cpu")).session.inputs
    reason = f"no column of the log fits what the model takes ({'; '.join(map(str, takes))})"
    for fit in fits_graph(takes, world.signature, world.log, world.place):
        for said in _problems(world, path, fit, plain):
            choices = [*base, *said, *fit.choices]
            try:
                answers = world.answers(choices)
            except OpmonError as exc:
                reason = str(exc)
                continue
            if convert and has_original(world.model):
                choices[0] = replace(choices[0], why=f"{choices[0].why}; {_alike(world, answers, pickled)}")
            return choices, fit, answers
    raise ModelError(f"{reason}; the log has: {', '.join(world.log.rows.column_names)}")


def _why(world: World, convert: bool, pickled: bool) -> str:
    if not convert:
        return "the registered model has an ONNX file"
    name = next(name for name in (*CODE, *BOOSTERS) if name in world.model.flavors)
    return f"converted from {_LIBRARIES[name]}" + ("" if pickled else ", whose file is data: no code of it is run")


def _pickled(world: World) -> bool:
    """Whether loading the original runs code in it."""
    try:
        return not isinstance(world.registry.original(world.model, world.folder / "models"), ModelFile)
    except ModelError:
        if not world.trust:
            raise
        return True


def _labels(path: Path) -> bool:
    """Whether the graph has an output with the model's own label."""
    from onnx import TensorProto

    kinds: dict[int, str] = {TensorProto.STRING: "string", TensorProto.INT64: "int64", TensorProto.INT32: "int32"}
    return any(kinds.get(item.type.tensor_type.elem_type) in KINDS for item in read_model(path).graph.output)


def _problems(world: World, path: Path, fit: Fit, plain: Scorer | None) -> Iterator[list[Choice]]:
    """The problems that fit the model, best first: a class by its own label, or by its numbers."""
    if plain is None:
        yield [Choice(("problem",), "classification", "the model gives a label")]
        return
    model, score = read_model(path), plain.outputs.score
    node = last_operator(model, score)
    kind = "" if node is None else str(node.op_type)
    values = _values(world, path, fit)
    width = values.shape[1] if values.ndim > 1 else 1
    if width == 1:
        yield from _of_one(world, kind, fit)
    elif kind in _REGRESSORS:
        raise ModelError(
            f"the model gives {width} numbers for each input ({score}), and a monitor watches one: register a model "
            f"with the one that matters, or log it in a column of its own"
        )
    else:
        problem = Choice(("problem",), "classification", f"the model gives {width} scores")
        yield [problem]
        if kind in _YES_OR_NO:  # it says what its scores are
            return
        meaning, guessed = _meaning(values)
        yield [problem, Choice(("scores",), meaning, f"what {score} gives, by {len(values)} rows", guessed=guessed)]


def _of_one(world: World, kind: str, fit: Fit) -> Iterator[list[Choice]]:
    """The problems for one number: yes or no if it is a score, or if the log has two values and the model is no
    regression by its last operator; else a value."""
    two = [
        name
        for name in world.log.rows.column_names
        if name not in fit.columns and is_answer(name) and world.log.different(name) == 2
    ]
    if kind in _YES_OR_NO:
        yield [Choice(("problem",), "classification", "the model gives the probability of the second of two classes")]
    elif two and kind not in _REGRESSORS:
        why = f"the model gives one number, and {two[0]!r} says one of two things"
        yield [
            Choice(("problem",), "classification", why, guessed=True),
            Choice(("scores",), "logits", "above 0 is the second class", guessed=True),
        ]
    else:
        yield [Choice(("problem",), "regression", "the model gives one number")]


def _meaning(values: Array) -> tuple[str, bool]:
    sums = values.sum(axis=1)
    if (values >= -1e-3).all() and np.allclose(sums, 1, atol=1e-2):
        return "probabilities", False
    return "logits", True


def _values(world: World, path: Path, fit: Fit) -> Array:
    """The scores of some rows."""
    settings = world.settings([Choice(("problem",), "regression"), *fit.choices])
    inputs = settings.inputs
    scorer = Scorer.open(
        path,
        "regression",
        device="cpu",
        features=inputs.features,
        tensor=inputs.tensor,
        reading=reading_of(settings),
        signature=_names(world),
    )
    fed = scorer.tensors(world.batch.rows.slice(0, 200))
    if not len(fed.rows):
        raise ModelError(f"none of the inputs can be scored: {next(iter(fed.rejected.values()), '')}")
    (values,) = scorer.run((scorer.outputs.score,), fed.tensors)
    return np.asarray(values)


def _names(world: World) -> Sequence[str]:
    return () if world.signature is None else world.signature.names


def _alike(world: World, answers: Answers, pickled: bool) -> str:
    """How many answers equal the original's; an error if too few."""
    scorer: Any = answers.scorer
    original = world.registry.original(world.model, world.folder / "models", pickled)
    try:
        found = agreement(scorer, original, [world.batch])
    except ModelError as exc:
        if pickled:
            raise
        return f"not compared with the original: {exc}"
    if not found.enough:
        raise ModelError(f"only {found}")
    return str(found)
