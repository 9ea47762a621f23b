"""The folder of a demo: made anew each time, without touching what the demo did not make."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from opmon.errors import InputError

MARKER = ".opmon-demo"
_FILES = (
    "opmon.yaml",
    "accuracy.png",
    "alarm-round.html",
    "opmon.db",
    "opmon.db-wal",
    "opmon.db-shm",
    "mlflow.db",
)
_FOLDERS = ("mlartifacts", ".opmon", "production")

_YAML = """\
# The monitor of the demo: "opmon status", "opmon run" and all other commands work in this folder.
# "opmon init" writes a file with every key there is.

mlflow:
  tracking_uri: sqlite:///mlflow.db
database: sqlite:///opmon.db
state: .opmon

monitors:
  digits:
    model: models:/digits@champion

    source:
      type: files                      # production logs one Parquet file an hour
      path: production/

    inputs:
      tensor: pixels                   # the column that the model takes: 64 numbers
    columns:
      id: input_id
      timestamp: at
      prediction: prediction           # what users saw, and what is judged
      model_version: model_version

    round:
      min_inputs: {window_size}

    sampler:
      type: adaptive                   # two waves: the second goes where the labels of the first say it pays
      budget: {budget}

    rules:
      - type: accuracy_level           # not one false alarm in its life, with probability 95 %
        name: accuracy-floor
        threshold: {threshold}
    actions:
      - type: registry_tag             # sets opmon.retrain on the model version

    drift:
      enabled: {drift_report}
    schedule:
      every: 10m
    seed: {seed}
"""


@dataclass(frozen=True)
class Folder:
    """Where everything of a demo is."""

    path: Path

    @property
    def configuration(self) -> Path:
        return self.path / "opmon.yaml"

    @property
    def production(self) -> Path:
        return self.path / "production"

    @property
    def artifacts(self) -> Path:
        return self.path / "mlartifacts"

    @property
    def figure(self) -> Path:
        return self.path / "accuracy.png"

    @property
    def alarm_page(self) -> Path:
        return self.path / "alarm-round.html"

    @classmethod
    def prepare(cls, path: Path) -> Folder:
        """An empty or new folder, or one that an earlier demo made: then what that made is removed."""
        path = path.expanduser().absolute()
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give the demo a folder of its own: opmon demo --folder ./opmon-demo")
        if (path / MARKER).is_file():
            _clear(path)
        elif path.exists() and any(path.iterdir()):
            raise InputError(
                f"{path} is not empty and was not made by the demo, so nothing in it is touched; "
                "name another folder: opmon demo --folder ./another-demo"
            )
        path.mkdir(parents=True, exist_ok=True)
        (path / MARKER).write_text(json.dumps({"made by": "opmon demo", "files": [*_FILES, *_FOLDERS]}) + "\n")
        folder = cls(path)
        for made in (folder.production, folder.artifacts):
            made.mkdir()
        return folder

    def configure(self, **values: object) -> Path:
        """Write opmon.yaml."""
        shown = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
        self.configuration.write_text(_YAML.format(**shown), encoding="utf-8")
        return self.configuration


def _clear(path: Path) -> None:
    """Remove what a demo makes; a link is removed, never followed."""
    for name in _FILES:
        (path / name).unlink(missing_ok=True)
    for name in _FOLDERS:
        inner = path / name
        if inner.is_symlink():
            inner.unlink()
        elif inner.is_dir():
            shutil.rmtree(inner)
