"""What a round's sample is made of, and what its estimate says of missing answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opmon.stages.estimate import read_answers
from opmon.store import queue, revisions, rounds
from opmon.types import Estimate, Label
from opmon.wording import percent


@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_sample_says_the_problem_of_its_round(workbench: Any, tmp_path: Path, problem: str) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 20})
    workbench.write_window()
    assert monitor.advance().problems == []
    workbench.answer(monitor)
    with monitor.store.read() as connection:
        found = rounds.get(connection, monitor.settings.name, 1)
        answers = read_answers(connection, replace(found, plan=replace(found.plan, problem=problem)))
    assert answers.sample.problem == problem


def newest(monitor: Any) -> Estimate:
    with monitor.store.read() as connection:
        return revisions.latest_estimates(connection, monitor.settings.name)[-1].estimate


def test_a_final_estimate_with_few_answers_says_how_far_the_others_could_lead(workbench: Any, tmp_path: Path) -> None:
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 40})
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, limit=15)
    monitor.advance()
    provisional = newest(monitor)
    assert provisional.provisional
    assert not any("could" in note or "were wrong" in note for note in provisional.notes)
    workbench.answer(monitor, skip=1.0)
    monitor.advance()
    final = newest(monitor)
    assert final.response == 15 / 40
    wrong, right = (1 - final.value) * 15, final.value * 15
    told = f"{percent(right / 40)} if all of them were wrong and {percent(1 - wrong / 40)} if all were right"
    assert any(note.startswith("only 38 % of the draws have an answer") and told in note for note in final.notes)


def test_who_answers_is_learned_from_the_variables_of_all_draws(workbench: Any, tmp_path: Path) -> None:
    """Annotators skip what the model trusts: the round's sample has a propensity, and the estimate says so."""
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", sampler={"type": "srs", "budget": 60})
    workbench.write_window()
    monitor.advance()
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
        known = {task.task_id: task for task in queue.answers(connection, rounds.get(connection, workbench.name, 1).id)}
    by_trust = sorted(tasks, key=lambda task: next(iter(known[task.id].variables.values())))
    given = [
        Label(task.id, "ann", None if place < 20 else workbench.truth[task.input_id], monitor.clock())
        for place, task in enumerate(by_trust)
    ]
    with monitor.store.write() as connection:
        queue.record(connection, given, monitor.clock())
    monitor.advance()
    assert any(note.startswith("response differs: ") for note in newest(monitor).notes)
    with monitor.store.read() as connection:
        sample = read_answers(connection, rounds.get(connection, workbench.name, 1)).sample
    assert sample.propensity is not None
    assert sample.propensity[~sample.answered].mean() < sample.propensity[sample.answered].mean() / 2
