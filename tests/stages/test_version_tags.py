"""What people read of a model in MLflow's registry: on its own page, and on that of each version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from opmon.errors import InputError, RegistryUnavailable
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


@pytest.fixture
def monitor(workbench: Any, tmp_path: Path) -> Any:
    """Of a world of its own, ``monitor.bench``, whose alias can be moved."""
    own = workbench.sibling(tmp_path / "own")
    rules = [{"type": "accuracy_below", "threshold": 0.8, "certainty": "estimate", "name": "floor"}]
    found = own.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", rules=rules)
    found.bench = own
    return found


def said_of_the_model(monitor: Any) -> str:
    return re.sub(r"\s+", " ", monitor.registry.model_description("digits"))


def test_the_models_page_names_the_version_in_production_after_a_rollback(monitor: Any) -> None:
    own = monitor.bench
    own.live(monitor, 2)
    assert "watches version 1" in said_of_the_model(monitor)
    assert "**healthy** since round 1" in said_of_the_model(monitor)
    first, second = monitor.registry.resolve(own.model), own.new_version()
    own.live(monitor, 1, wrong=0.9)
    assert f"watches version {second}" in said_of_the_model(monitor)
    assert "**degraded** since round 3" in said_of_the_model(monitor)
    monitor.registry.set_alias(first, "champion")
    own.live(monitor, 2)
    assert "watches version 1" in said_of_the_model(monitor)
    assert "**healthy** since round 4" in said_of_the_model(monitor)


def test_a_version_that_was_replaced_leaves_the_models_page_to_its_successor(monitor: Any) -> None:
    own = monitor.bench
    own.live(monitor, 1)
    own.write_window()
    monitor.advance()
    second = own.new_version()
    own.write_window()
    monitor.advance()
    own.answer(monitor, only=3)
    monitor.advance()
    assert f"watches version {second}" in said_of_the_model(monitor)
    own.answer(monitor, wrong=0.9, only=2)
    assert monitor.advance().closed == 1
    assert monitor.registry.version_tags(monitor.registry.resolve("models:/digits/1"))["opmon.status"] == "degraded"
    assert f"watches version {second}" in said_of_the_model(monitor)


@pytest.mark.parametrize("failing", ["describe_version", "describe_model", "tag_version"])
def test_what_a_lost_call_has_not_told_is_told_by_the_next_cycle(failing: str, monitor: Any) -> None:
    own = monitor.bench
    own.live(monitor, 1)
    own.write_window()
    monitor.advance()
    own.answer(monitor, wrong=0.9)
    with pytest.MonkeyPatch.context() as patch:

        def away(*_: object) -> None:
            raise RegistryUnavailable("MLflow is away")

        patch.setattr(monitor.registry, failing, away)
        assert monitor.advance().closed == 0
    assert monitor.advance().closed == 1
    version = monitor.registry.resolve(own.model)
    assert monitor.registry.version_tags(version)["opmon.status"] == "degraded"
    assert "**Degraded**" in monitor.registry.version_notes(version).description
    assert "**degraded** since round 2" in said_of_the_model(monitor)
