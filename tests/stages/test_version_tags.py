"""What people read of a model in MLflow's registry: on its own page, and on that of each version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opmon.errors import InputError
from opmon.reports.notes import has_section
from opmon.types import ModelVersion


class Narrow:
    """Takes no longer descriptions than PostgreSQL holds of MLflow's."""

    def __init__(self, registry: Any) -> None:
        self._describe = {name: getattr(registry, name) for name in ("describe_version", "describe_model")}

    def describe_version(self, model: ModelVersion, description: str) -> None:
        self._take("describe_version", model, description)

    def describe_model(self, name: str, description: str) -> None:
        self._take("describe_model", name, description)

    def _take(self, what: str, of: Any, description: str) -> None:
        if len(description) > 5_000:
            raise InputError("value too long for type character varying(5000)")
        self._describe[what](of, description)


@pytest.mark.parametrize("length", [4_400, 4_900, 4_999])
def test_a_long_description_stays_as_people_wrote_it_and_holds_up_no_round(
    length: int, workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = workbench.sibling(tmp_path / "own")
    monitor = own.monitor(f"sqlite:///{tmp_path / 'opmon.db'}")
    version, card = monitor.registry.resolve(own.model), "x" * length
    monitor.registry.describe_version(version, card)
    monitor.registry.describe_model(version.name, card)
    narrow = Narrow(monitor.registry)
    for name in ("describe_version", "describe_model"):
        monkeypatch.setattr(monitor.registry, name, getattr(narrow, name))
    own.live(monitor, 1)
    for said in (monitor.registry.version_notes(version).description, monitor.registry.model_description("digits")):
        assert said.startswith(card)
        assert len(said) <= 5_000
        assert has_section(said, own.name) is (length == 4_400)


def test_a_description_that_is_not_taken_holds_up_no_round(
    workbench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own = workbench.sibling(tmp_path / "own")
    monitor = own.monitor(f"sqlite:///{tmp_path / 'opmon.db'}")

    def refuse(*_: object) -> None:
        raise InputError("no more than 100 characters")

    monkeypatch.setattr(monitor.registry, "describe_version", refuse)
    own.live(monitor, 1)
    assert "the description of models:/digits/1 stays as it is: no more than 100 characters" in caplog.text
