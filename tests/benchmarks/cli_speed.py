"""How quick the command line answers: ``opmon --help`` warm, and ``opmon status`` on a monitor with many rounds.

    python tests/benchmarks/cli_speed.py [--rounds 1000] [--json]

``status`` is compared with the time that its imports alone take in the same run, so that a slow machine does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

CONFIG = """
database: sqlite:///opmon.db
monitors:
  digits:
    model: models:/digits@champion
    source: {path: production}
    rules: [{type: accuracy_below, threshold: 0.9}]
"""


def fill(folder: Path, count: int) -> None:
    """A database as ``count`` rounds leave it: slices, tasks, labels, estimates, verdicts."""
    from opmon.adjudication import Asked
    from opmon.store import draws, queue, revisions, rounds, verdicts
    from opmon.store.engine import open_store
    from opmon.store.plans import RoundPlan
    from opmon.types import Draw, Estimate, Label, Slice, Verdict

    store, begin = open_store(f"sqlite:///{folder / 'opmon.db'}"), datetime(2026, 1, 1, tzinfo=UTC)
    draw = draws.pack_draw(Draw("srs", 1000, np.arange(50)))
    with store.write() as connection:
        for number in range(1, count + 1):
            at = begin + timedelta(hours=number)
            piece = Slice(f"part-{number}", "0", "1000", 1000, at)
            known = {"model_name": "digits", "model_version": "1", "plan": RoundPlan()}
            rounds.add(connection, "digits", [piece], received=1000, only_version=None, opened_at=at, **known)
            round_ = rounds.get(connection, "digits", number)
            tasks = [Asked(k, f"{number}-{k}", "1", {"confidence": 0.1}, {"x": 1}) for k in range(50)]
            queue.queue(connection, "digits", round_.id, 0, tasks, at)
            first = (number - 1) * 50 + 1
            queue.record(connection, [Label(first + k, "ann", "1", at) for k in range(50)], at)
            estimate = Estimate(0.95, 0.9, 0.98, 50, 1000, 1.0, "srs/wilson")
            revision = revisions.add_estimate(connection, round_.id, estimate, failures=2, labels_seen=50, made_at=at)
            verdicts.add_verdicts(connection, round_.id, revision, [Verdict("floor", "ok", "well above", 0.95, 0.9)])
            rounds.update(connection, round_.id, state="closed", ends_at=at, inputs=1000, draw=draw, reported=0)


def seconds(command: list[str], folder: Path, repetitions: int = 7) -> float:
    """The median wall-clock time, after one run that warms the caches."""
    taken = []
    for _ in range(repetitions + 1):
        begun = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    opmon = [str(Path(sys.executable).with_name("opmon"))]
    imports = (
        "import opmon.cli.status, opmon.config, opmon.store.engine, opmon.store.rounds, opmon.store.queue, rich.table"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "opmon.yaml").write_text(CONFIG)
        fill(folder, options.rounds)
        figures = {
            "interpreter": seconds([sys.executable, "-c", "pass"], folder),
            "help": seconds([*opmon, "--help"], folder),
            "status_imports": seconds([sys.executable, "-c", imports], folder),
            "status": seconds([*opmon, "status"], folder),
            "rounds": options.rounds,
        }
    figures["status_beyond_imports"] = figures["status"] - figures["status_imports"]
    if options.json:
        print(json.dumps(figures))
        return
    print(f"the bare interpreter               {figures['interpreter']:.3f} s")
    print(f"opmon --help                       {figures['help']:.3f} s   (bar: 0.5 s)")
    print(f"opmon status, {options.rounds} rounds          {figures['status']:.3f} s")
    print(f"  of which beyond its imports      {figures['status_beyond_imports']:.3f} s   (bar: 1 s)")


if __name__ == "__main__":
    main()
