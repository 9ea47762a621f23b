"""The action that starts an MLflow Project: a retraining, for instance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from opmon.abc import Ability
from opmon.errors import InputError
from opmon.triggers._on_registry import OnRegistry
from opmon.types import Document


@dataclass(frozen=True)
class MlflowProject(OnRegistry):
    """On an alarm, runs the MLflow Project at ``uri`` once for the event.

    ``parameters`` are passed on; ``{run_uri}``, ``{failures_uri}``, ``{model_uri}``, ``{model_name}``,
    ``{model_version}``, ``{monitor}``, ``{rule}``, ``{round}`` and ``{event_id}`` in them are filled in. The run is
    found by the event's id before it is made, so an event delivered twice starts one run. It is started in a process of
    its own and not waited for. ``backend`` and ``env_manager`` are MLflow's (``local``, ``virtualenv``, …).
    """

    needs: ClassVar[frozenset[Ability]] = frozenset({"run projects"})

    uri: str
    """Where the project is: a folder or a Git address."""
    entry_point: str = "main"
    """Which of its entry points is run."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Its parameters; {event_id}, {model_uri} and the like are filled in."""
    experiment: str = "opmon/retraining"
    """The experiment of its run."""
    version: str | None = None
    """The commit or branch of a Git project."""
    backend: str = "local"
    """Where MLflow runs it."""
    env_manager: str = "local"
    """How MLflow makes its environment: local, virtualenv, ..."""

    def __post_init__(self) -> None:
        if not isinstance(self.uri, str) or not self.uri.strip():
            raise InputError("uri must be the folder or Git address of an MLflow Project")
        for name, value in self.parameters.items():
            _check(str(value), name)

    def act(self, event: Document) -> None:
        if event["type"] != "opmon.alarm":
            return
        values = _values(event)
        parameters = {name: _filled(str(text), values) for name, text in self.parameters.items()}
        self.registry.run_project(
            self.uri,
            self.entry_point,
            parameters,
            self.experiment,
            str(event["id"]),
            version=self.version,
            backend=self.backend,
            env_manager=self.env_manager,
        )


def _values(event: Document) -> dict[str, str]:
    model = event.get("model") or {}
    found = {
        "run_uri": event.get("run_uri"),
        "failures_uri": event.get("failures_uri"),
        "model_uri": model.get("uri"),
        "model_name": model.get("name"),
        "model_version": model.get("version"),
        "monitor": event.get("monitor"),
        "rule": event.get("rule"),
        "round": event.get("round"),
        "event_id": event.get("id"),
    }
    return {name: "" if value is None else str(value) for name, value in found.items()}


WORDS = tuple(_values({}))


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Every ``{word}`` replaced once; nothing else of format strings is understood."""
    return _WORD.sub(lambda match: values[match[1]], text)


def _check(text: str, name: str) -> None:
    unknown = [word for word in _WORD_LIKE.findall(text) if word not in WORDS]
    if unknown:
        raise InputError(f"parameters has an unknown {{{unknown[0]}}} in {name!r}; there are: {', '.join(WORDS)}")


_WORD = re.compile("{(" + "|".join(WORDS) + ")}")
_WORD_LIKE = re.compile(r"\{(\w*)\}")
