"""Recording in ``mlflow models serve`` and wherever else a pyfunc model predicts.

::

    mlflow.pyfunc.log_model(
        name="served",
        python_model=Recorded("s3://bucket/inputs", model_version=3),
        artifacts={"model": "models:/digits/3"},
        pip_requirements=["opmon", …],
    )
"""

from __future__ import annotations

from typing import Any

import mlflow.pyfunc

from opmon.recorder.recorder import Recorder


class Recorded(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A model that answers what its artifact ``model`` answers, and records each input with its answer.

    ``uri`` and ``options`` are those of :class:`opmon.Recorder`, which is made where the model is loaded. A table and
    an array are as many inputs as they have rows; the answer is given unchanged, and is recorded where it has one entry
    for each of them.
    """

    def __init__(self, uri: str, **options: Any) -> None:
        Recorder(uri, **options).close()  # what is wrong with them is told here, not where the model is served
        self._uri, self._options = uri, options
        self._model: Any = None
        self._recorder: Recorder | None = None

    def load_context(self, context: Any) -> None:
        self._model = mlflow.pyfunc.load_model(context.artifacts["model"])
        self._recorder = Recorder(self._uri, **self._options)

    @property
    def recorder(self) -> Recorder:
        """The recorder of the model that was loaded."""
        if self._recorder is None:
            raise RuntimeError("the model is not loaded: mlflow.pyfunc.load_model() makes its recorder")
        return self._recorder

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def] # MLflow makes schemas of hints
        answer = self._model.predict(model_input, params=params)
        self.recorder.record_batch(model_input, answer)
        return answer

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None, "_recorder": None}
