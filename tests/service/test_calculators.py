"""Measures of one's own in processes of their own: the same numbers, and whatever a function does hurts nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Measure
from opmon.errors import InputError
from opmon.service.calculators import Calculators
from opmon.types.labelled import Labelled
from tests.patience import LONGEST, until

OWN = """
    import os, sys, time
    import numpy as np

    def right(truth, prediction, scores, weight):
        return np.average(truth == prediction, weights=weight)

    def picky(truth, prediction, scores, weight):
        raise ValueError(f"no {truth[0]}, and scores are {scores}")

    def process(truth, prediction, scores, weight):
        return os.getpid()

    def spins(truth, prediction, scores, weight):
        while True:
            pass

    def leaves(truth, prediction, scores, weight):
        os._exit(3)

    def exits(truth, prediction, scores, weight):
        sys.exit("enough")
"""
ROWS = Labelled(np.ones(4, bool), np.array(["a", "b", "a", "b"]), np.array(["a", "b", "b", "b"]))


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "calculated_apart.py").write_text(textwrap.dedent(OWN))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("calculated_apart", None)


def measure(name: str) -> Measure:
    made: Measure = plugins.make("measure", "function", {"path": f"calculated_apart:{name}"})
    return made


def test_a_number_is_the_same_in_a_process_of_its_own() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    with Calculators().at_work():
        apart = [measure("right").value(ROWS, weights), measure("right").value(ROWS, np.ones(4))]
        others = measure("right").value(ROWS.only(np.array([0, 2])), np.ones(2))
        process = measure("process").value(ROWS, weights)
    assert apart == [measure("right").value(ROWS, weights), measure("right").value(ROWS, np.ones(4))] == [0.7, 0.75]
    assert others == 0.5
    assert process != os.getpid() == measure("process").value(ROWS, weights)


def test_a_function_that_fails_is_told_in_the_same_words_and_its_process_goes_on() -> None:
    with Calculators().at_work():
        first = measure("process").value(ROWS, np.ones(4))
        with pytest.raises(InputError) as apart:
            measure("picky").value(ROWS, np.ones(4))
        with pytest.raises(InputError, match="SystemExit: enough"):
            measure("exits").value(ROWS, np.ones(4))
        assert measure("process").value(ROWS, np.ones(4)) == first
    with pytest.raises(InputError) as here:
        measure("picky").value(ROWS, np.ones(4))
    assert str(apart.value) == str(here.value)
    assert "fails on 4 labelled inputs: ValueError: no a, and scores are None" in str(here.value)


def test_a_function_that_ends_its_process_is_told_and_the_next_number_comes_from_another() -> None:
    with Calculators().at_work():
        with pytest.raises(InputError, match=r"its process ended \(exit code 3\)"):
            measure("leaves").value(ROWS, np.ones(4))
        assert measure("right").value(ROWS, np.ones(4)) == 0.75


def test_a_function_without_end_is_ended_and_leaves_the_interpreter_to_others() -> None:
    calculators = Calculators()
    with calculators.at_work():
        measure("right").value(ROWS, np.ones(4))
        process = calculators._free[0].process
        calculators.seconds = 1.0
        said: list[str] = []

        def ask() -> None:
            try:
                measure("spins").value(ROWS, np.ones(4))
            except InputError as exc:
                said.append(str(exc))

        asking = threading.Thread(target=ask)
        asking.start()
        begun = time.process_time()
        asking.join()
        assert time.process_time() - begun < 0.5, "this process has computed what another should"
        assert "it gave no answer within 1 second" in said[0]
        assert process.returncode is not None
        calculators.seconds = LONGEST
        assert measure("right").value(ROWS, np.ones(4)) == 0.75


def test_processes_that_nobody_asks_end() -> None:
    calculators = Calculators(idle=0.2)
    with calculators.at_work():
        measure("right").value(ROWS, np.ones(4))
        process = calculators._free[0].process
        until(lambda: not calculators._free and process.returncode is not None)
        measure("right").value(ROWS, np.ones(4))
        process = calculators._free[0].process
    assert process.returncode is not None, "the service has ended"


def test_a_process_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    script = f"""
        import os, sys
        sys.path.insert(0, {str(tmp_path)!r})
        from tests.service.test_calculators import ROWS, measure
        from opmon.service.calculators import Calculators
        import numpy as np
        calculators = Calculators()
        with calculators.at_work():
            measure("right").value(ROWS, np.ones(4))
            print(calculators._free[0].process.pid, flush=True)
            measure("spins").value(ROWS, np.ones(4))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        pid = int(service.stdout.readline())
        os.kill(pid, 0)
        service.kill()
    until(lambda: not Path(f"/proc/{pid}").exists() or _is_dead(pid))


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
