"""A monitor with MLflow in trouble: killed and started again, slow, and answering after the line is cut.

Run it with ``python tests/benchmarks/mlflow_troubles.py [--rounds 20] [--only killed slow lost]``. It prints for each
trouble how many of the rounds are in MLflow once and whole, how many timelines there are, how long the longest cycle
was, and how many calls a round took. It ends with 1 where a round is missing, doubled or incomplete, where the timeline
is split, or where a cycle took longer than 120 s.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from opmon.store import rounds
from tests.conftest import Workbench
from tests.made_once import new_opmon_database
from tests.registry.conftest import Server, register
from tests.registry.proxy import CUT, LOSE, SLOW, Proxy, proxy_to

LONGEST_CYCLE = 120.0
FILES = {"frame.parquet", "draw.npz", "labels.parquet", "estimate.json", "round.html", "verdicts.json", "failures"}


@dataclass
class Outcome:
    """What became of the rounds under one trouble."""

    trouble: str
    rounds: int
    whole: int = 0
    runs: int = 0
    timelines: int = 0
    doubled_steps: int = 0
    cycles: list[float] = field(default_factory=list)
    problems: int = 0
    met: int = 0
    """How often the trouble struck."""
    calls: float = 0.0
    """Of a round, beside its files."""

    @property
    def holds(self) -> bool:
        once = self.whole == self.runs == self.rounds and self.timelines == 1 and not self.doubled_steps
        return once and max(self.cycles) <= LONGEST_CYCLE

    def __str__(self) -> str:
        parts = (
            f"{self.whole} of {self.rounds} rounds whole, {self.runs} runs, {self.timelines} timeline, "
            f"{self.doubled_steps} steps doubled",
            f"{len(self.cycles)} cycles, the longest {max(self.cycles):.1f} s, {self.problems} with a problem",
            f"struck {self.met} times",
            f"{self.calls:.1f} calls a round beside its files",
            "holds" if self.holds else "DOES NOT HOLD",
        )
        return f"{self.trouble}: {'; '.join(parts)}"


class Killer:
    """Kills the server after some 30 to 90 requests, and starts it again."""

    def __init__(self, server: Server, folder: Path, proxy: Proxy, seed: int) -> None:
        self.server, self.folder, self.proxy = server, folder, proxy
        self.dice, self.ended, self.kills = random.Random(seed), threading.Event(), 0
        self.thread = threading.Thread(target=self._kill, daemon=True)

    def _kill(self) -> None:
        while not self.ended.is_set():
            last = len(self.proxy.seen) + self.dice.randint(30, 90)
            while len(self.proxy.seen) < last:
                if self.ended.wait(0.05):
                    return
            self.server.kill()
            self.kills += 1
            self.ended.wait(self.dice.uniform(0, 4))
            self.server = Server.start(self.folder, again=True)
            self.proxy.server = self.server.uri

    def end(self) -> None:
        self.ended.set()
        self.thread.join()


def suffer(trouble: str, count: int, folder: Path, seed: int = 0) -> Outcome:
    """Some rounds from inputs to their end, under one trouble."""
    server = Server.start(folder)
    killer = None
    try:
        register(server.uri)
        with proxy_to(server.uri) as proxy:
            bench = Workbench(folder / "world", proxy.uri, trouble, "models:/digits@champion")
            monitor = bench.monitor(new_opmon_database(folder / "opmon.db"))
            killer = _begin(trouble, server, folder, proxy, seed)
            outcome = Outcome(trouble, count)
            _live(bench, monitor, outcome)
            if killer is not None:
                killer.end()
                server, outcome.met = killer.server, killer.kills
            else:
                outcome.met = sum(proxy.met.values())
            asked = [line for line in proxy.seen if "/mlflow/" in line]
            outcome.calls = len(asked) / count
            proxy.clear()
            _look(monitor, outcome, server.uri, folder / "got")
        return outcome
    finally:
        if killer is not None:
            killer.end()
            killer.server.kill()
        server.kill()


def _begin(trouble: str, server: Server, folder: Path, proxy: Proxy, seed: int) -> Killer | None:
    if trouble == "slow":
        proxy.rule(".", SLOW)
    elif trouble == "lost":
        dice = random.Random(seed)
        proxy.chance = lambda line: dice.random() < 0.15 and (LOSE if dice.random() < 0.7 else CUT)
    else:
        killer = Killer(server, folder, proxy, seed)
        killer.thread.start()
        return killer
    return None


def _live(bench: Workbench, monitor: Any, outcome: Outcome) -> None:
    """Windows come, labels come, and the monitor is called until all rounds are closed."""
    deadline, written = time.monotonic() + 120 * outcome.rounds, 0
    while time.monotonic() < deadline:
        if written < outcome.rounds:
            bench.write_window(seed=written)
            written += 1
        began = time.monotonic()
        cycle = monitor.advance()
        outcome.cycles.append(time.monotonic() - began)
        outcome.problems += bool(cycle.problems)
        bench.answer(monitor, wrong=0.1)
        with monitor.store.read() as connection:
            known = rounds.newest(connection, bench.name, outcome.rounds)
        if len(known) == outcome.rounds and all(each.state == "closed" for each in known):
            return
        if cycle.problems:
            time.sleep(1.0)


def _look(monitor: Any, outcome: Outcome, uri: str, folder: Path) -> None:
    """What MLflow holds in the end."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(f"opmon/{outcome.trouble}").experiment_id
    runs = client.search_runs([experiment], max_results=1000)
    kinds = Counter(run.data.tags.get("opmon.kind") for run in runs)
    outcome.runs, outcome.timelines = kinds["round"], kinds["timeline"]
    for run in runs:
        if run.data.tags.get("opmon.kind") != "round":
            steps = Counter(one.step for one in client.get_metric_history(run.info.run_id, "accuracy/estimate"))
            outcome.doubled_steps += sum(count - 1 for count in steps.values())
            continue
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        outcome.whole += (
            files >= FILES
            and run.info.status == "FINISHED"
            and {"accuracy/estimate", "labels/returned"} <= run.data.metrics.keys()
            and "sampler" in run.data.params
            and "mlflow.note.content" in run.data.tags
            and len(run.inputs.dataset_inputs) >= 1
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=["killed", "slow", "lost"], default=["killed", "slow", "lost"])
    chosen = parser.parse_args()
    holds = True
    for trouble in chosen.only:
        with tempfile.TemporaryDirectory(prefix="opmon-troubles-") as folder:
            outcome = suffer(trouble, chosen.rounds, Path(folder), chosen.seed)
        print(outcome, flush=True)
        holds &= outcome.holds
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
