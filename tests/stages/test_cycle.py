"""What a cycle did, and what it tells of what it could not do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from opmon.errors import SourceError
from opmon.stages.cycle import Cycle, attempt


def test_one_trouble_is_told_once(tmp_path: Any) -> None:
    work: Any = SimpleNamespace(name="m", folder=tmp_path)
    cycle = Cycle()

    def failing(message: str) -> Any:
        def step() -> None:
            raise SourceError(message)

        return step

    gone = "there is no table 'requests'; there are: away."
    for message in (f"{gone} The round waits.", gone, "the disk is gone"):
        assert attempt(work, cycle, failing(message)) is None
    assert [str(problem) for problem in cycle.problems] == [f"{gone} The round waits.", "the disk is gone"]
    assert cycle.kept_out == "the disk is gone"


def test_what_is_kept_of_a_trouble_has_no_secret(tmp_path: Any) -> None:
    def step() -> None:
        raise SourceError("https://ann:pa55word@logs.example.com/?token=pa55word did not answer")

    cycle = Cycle()
    attempt(SimpleNamespace(name="m", folder=tmp_path), cycle, step)  # type: ignore[arg-type]
    assert "logs.example.com" in str(cycle.kept_out)
    assert "pa55word" not in str(cycle.kept_out)
