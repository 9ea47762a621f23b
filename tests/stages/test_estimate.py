"""What a round's sample is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opmon.stages.estimate import read_answers
from opmon.store import rounds


@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_sample_says_the_problem_of_its_round(workbench: Any, tmp_path: Path, problem: str) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 20})
    workbench.write_window()
    assert monitor.advance().problems == []
    workbench.answer(monitor)
    with monitor.store.read() as connection:
        found = rounds.get(connection, monitor.settings.name, 1)
        answers = read_answers(connection, replace(found, plan={**found.plan, "problem": problem}))
    assert answers.sample.problem == problem
