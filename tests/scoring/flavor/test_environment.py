"""The python that runs a model: opmon's own, another one, or one that uv builds from the model's requirements."""

from __future__ import annotations

import sys
from pathlib import Path

import mlflow
import pyarrow as pa
import pytest

from opmon.abc import Runnable
from opmon.errors import ModelError
from opmon.registry.originals import runnable
from opmon.scoring.flavor.environment import python_of
from opmon.scoring.flavor.process import Worker
from opmon.scoring.flavor.scorer import FlavorScorer
from opmon.types import Batch

UNLIKE = "2.0.0"
"""A version of ``iniconfig``, which pytest has in a later one: no environment but the model's own gives it."""


MODEL = """\
from importlib.metadata import version
import mlflow

class Told(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input):
        return [version("iniconfig")] * len(model_input)

mlflow.models.set_model(Told())
"""


def model(folder: Path, requirements: str | None) -> Runnable:
    file = folder / "requirements.txt"
    if requirements is not None:
        file.write_text(requirements)
    python = "{}.{}.{}".format(*sys.version_info[:3])
    return Runnable(folder / "serve.py", folder, None if requirements is None else file, python)


def test_opmons_own_python_or_another(tmp_path: Path) -> None:
    assert python_of("current", model(tmp_path, ""), tmp_path) == sys.executable
    assert python_of("/opt/python", model(tmp_path, ""), tmp_path) == "/opt/python"


@pytest.mark.filterwarnings("ignore")
def test_a_model_answers_in_the_environment_that_is_built_for_it_once(tmp_path: Path) -> None:
    needed = [f"iniconfig=={UNLIKE}", f"mlflow-skinny=={mlflow.__version__}"]
    (tmp_path / "told.py").write_text(MODEL)
    mlflow.pyfunc.save_model(tmp_path / "m", python_model=str(tmp_path / "told.py"), pip_requirements=needed)
    logged = runnable(tmp_path / "m")
    python = python_of("uv", logged, tmp_path)
    scorer = FlavorScorer(Worker(python, logged.script, logged.model, 60.0, None))
    (found,) = scorer.score([Batch(0, 0, pa.RecordBatch.from_pydict({"a": [1.0, 2.0]}))])
    scorer.close()
    assert found.predictions.tolist() == [UNLIKE, UNLIKE]
    ready = Path(python).parents[1] / "ready"
    before = ready.stat().st_mtime_ns
    assert python_of("uv", logged, tmp_path) == python
    assert ready.stat().st_mtime_ns == before, "it is not built again"
    ready.unlink()
    Path(python).unlink()  # as a process leaves it that is killed while it builds
    assert python_of("uv", logged, tmp_path) == python
    assert Path(python).exists()


def test_what_cannot_be_built_is_told_in_the_words_of_uv(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"logged without requirements.txt"):
        python_of("uv", model(tmp_path, None), tmp_path)
    wanted = model(tmp_path, "./no-such-wheel.whl\n")
    with pytest.raises(ModelError, match=r"cannot be built: .*no-such-wheel.*\(uv pip install\).*or set scoring.env"):
        python_of("uv", wanted, tmp_path)
    (tmp_path / "requirements.txt").write_text("")
    assert Path(python_of("uv", wanted, tmp_path)).exists(), "once the requirements are right"


def test_without_uv_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(ModelError, match="uv is not installed: run pip install uv"):
        python_of("uv", model(tmp_path, ""), tmp_path)
