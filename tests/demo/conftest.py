from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from opmon.demo.folder import Folder
from opmon.demo.plot import Plan
from opmon.demo.story import Story
from opmon.demo.terminal import show

SMALL = Plan(window_size=500, budget=100, healthy=2, drift=(1.0,), delay=1, recovered=2, most=8)


@dataclass(frozen=True)
class Told:
    """A demo that is over, and what it printed."""

    story: Story
    printed: str

    @property
    def folder(self) -> Folder:
        return self.story.folder


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A whole demo: shorter than the one users see, and otherwise the same."""
    paper = io.StringIO()
    story = Story(Folder.prepare(tmp_path_factory.mktemp("demo") / "opmon-demo"), SMALL)
    show(story, Console(file=paper, width=80))
    return Told(story, paper.getvalue())
