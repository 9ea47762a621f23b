"""One Label Studio for all tests of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from monitored import install
from opmon_label_studio.provider import LabelStudio
from real_studio import TOKEN, Studio, environment


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    made = environment()
    folder = tmp_path_factory.mktemp("label-studio") / "data"
    if (made / "tables").exists():
        shutil.copytree(made / "tables", folder)
    server = Studio(made, folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def provider(studio: Studio) -> LabelStudio:
    return LabelStudio(studio.url, TOKEN)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of opmon with a round of inputs to come."""
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", TOKEN)
    install(tmp_path)
    return tmp_path
