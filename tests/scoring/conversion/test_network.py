"""PyTorch models are exported in a process of their own, and answer there for the comparison."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from mlflow.models import infer_signature
from torch import nn

from opmon.abc import Network
from opmon.errors import ModelError
from opmon.registry import _network
from opmon.registry.originals import network
from opmon.scoring.conversion import converting
from opmon.scoring.conversion.converting import convert
from opmon.scoring.conversion.network import outputs_of

RNG = np.random.default_rng(0)


class Two(nn.Module):
    """Two inputs by name, one of words, and a dictionary with the scores and what has no row for each input."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.words, self.person = nn.Embedding(50, 8), nn.Linear(8, 2), nn.Linear(4, 2)

    def forward(self, tokens: Any, person: Any) -> Any:
        return {"logits": self.words(self.embed(tokens).mean(1)) + self.person(person), "scale": self.words.bias.sum()}


def logged(folder: Path, net: Any, given: Any, **more: Any) -> Network:
    import mlflow

    options = {"serialization_format": "pickle", "pip_requirements": [], **more}
    mlflow.pytorch.save_model(net, str(folder / "model"), signature=infer_signature(given), **options)
    return network(folder / "model")


def numbers(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


APART = "two inputs in another order"
CASES: dict[str, Any] = {
    APART: (
        lambda: Two().eval(),
        lambda count: {"person": numbers(count, 4), "tokens": RNG.integers(0, 50, (count, 7))},
        {},
    ),
    "pictures, as a graph": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 3)).eval(),
        lambda count: {"inputs": numbers(count, 1, 8, 8)},
        {"serialization_format": "pt2", "input_example": numbers(2, 1, 8, 8)},
    ),
    "a script": (lambda: torch.jit.script(nn.Linear(5, 2)), lambda count: {"inputs": numbers(count, 5)}, {}),
}


def exported_here(net: Network) -> bytes:
    """What the process of the script would write, written by the script's functions in this one."""
    path = net.model / "exported.onnx"
    _network.export(net.model, path)
    return path.read_bytes()


def asked_here(net: Network, tensors: Any) -> Any:
    return _network.answers(_network.loaded(net.model)[0], tensors)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_an_exported_network_answers_any_number_of_inputs_as_it_does_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them in processes of their own, which do the same for all."""
    made, inputs, more = CASES[name]
    ask = outputs_of if name == APART else asked_here
    if name != APART:
        monkeypatch.setattr(converting, "exported", exported_here)
    given = inputs(3)
    net = logged(tmp_path, made(), given if len(given) > 1 else next(iter(given.values())), **more)
    session = onnxruntime.InferenceSession(convert(net), providers=["CPUExecutionProvider"])
    assert {item.name for item in session.get_inputs()} == set(given)
    asked = inputs(17)
    own = ask(net, asked)
    (output,) = [item.name for item in session.get_outputs()]
    assert set(own) == {output}, "what has no row for each input is left out"
    np.testing.assert_allclose(session.run(None, asked)[0], own[output], rtol=1e-4, atol=1e-5)


def test_what_cannot_be_exported_is_told_with_the_way_that_is_left(tmp_path: Path) -> None:
    import mlflow

    folder = tmp_path / "model"
    mlflow.pytorch.save_model(nn.Linear(2, 1), str(folder), serialization_format="pickle", pip_requirements=[])
    with pytest.raises(ModelError) as told:
        convert(network(folder))
    assert str(told.value) == (
        "this PyTorch model cannot be converted to ONNX: it was logged without a signature, which says what it takes: "
        "log it with one (mlflow.models.infer_signature). Let the model itself answer (scoring: {by: flavor, trust: "
        "true}), or register it as ONNX (mlflow.onnx.log_model)."
    )


@pytest.mark.filterwarnings("ignore")
def test_modules_of_the_models_own_are_not_taken_for_those_beside_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """opmon has a module models, too."""
    source = "from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n"
    (tmp_path / "models.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = importlib.import_module("models")
    monkeypatch.setitem(sys.modules, "models", made)
    net = logged(tmp_path, made.Net(3, 2), numbers(4, 3))
    (own,) = outputs_of(net, {"inputs": numbers(5, 3)}).values()
    assert own.shape == (5, 2)
