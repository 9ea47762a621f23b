"""Finds, reads and overrides: from a path and an environment to settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opmon.config import registry
from opmon.config.document import Document, KeyPath
from opmon.config.settings import Settings, checked
from opmon.config.yaml_text import MAX_BYTES, parse
from opmon.errors import ConfigError

DEFAULT_NAME = "opmon.yaml"
OVERRIDES: Mapping[str, KeyPath] = {
    "OPMON_DATABASE": ("database",),
    "OPMON_MLFLOW_TRACKING_URI": ("mlflow", "tracking_uri"),
    "OPMON_STATE": ("state",),
    "OPMON_WEB_LISTEN": ("web", "listen"),
    "OPMON_METRICS_LISTEN": ("metrics", "listen"),
}
"""The variables that win over the file; those of MLflow where it holds the models."""


def chosen_path(path: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The file that :func:`load` reads."""
    environment = os.environ if environment is None else environment
    return Path(path or environment.get("OPMON_CONFIG") or DEFAULT_NAME).expanduser()


def load(path: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in ``path``; without it in ``$OPMON_CONFIG``, else in ``./opmon.yaml``."""
    environment = os.environ if environment is None else environment
    chosen = chosen_path(path, environment)
    document = parse(_text(chosen), str(chosen), environment)
    registry.told_once(document)
    folder = str(chosen.absolute().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # modules that the file names, such as mine:pixels, may lie beside it
    return checked(document, chosen.absolute().parent, _override(document, environment))


def _override(document: Document, environment: Mapping[str, str]) -> dict[KeyPath, str]:
    overridden: dict[KeyPath, str] = {}
    for variable, path in OVERRIDES.items():
        value = environment.get(variable)
        if not value or (path[0] == "mlflow" and not registry.is_mlflow(document)):
            continue
        group: Any = document.data
        for part in path[:-1]:
            group[part] = group.get(part) or {}
            group = group[part]
        if isinstance(group, dict):  # else the file is wrong there, and is told so
            group[path[-1]] = value
            document.written.pop(path, None)
            overridden[path] = variable
    _use_mlflow_own(document, environment)
    return overridden


def _use_mlflow_own(document: Document, environment: Mapping[str, str]) -> None:
    """Where neither the file nor OPMON_* says where MLflow is, MLflow's own variable does."""
    uri = environment.get("MLFLOW_TRACKING_URI")
    if not uri or document.data.get("mlflow") or not registry.is_mlflow(document):
        return
    document.data["mlflow"] = {"tracking_uri": uri}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no {path}; write one with: opmon init (or name yours: --config, OPMON_CONFIG)"
        ) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; name the file in it, such as {path / DEFAULT_NAME}") from None
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES:,} bytes; this is no configuration of opmon")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        raise ConfigError(
            f"{path}:{line}: not UTF-8 (byte 0x{content[exc.start]:02x}); save the file as UTF-8"
        ) from exc
