"""Hostile inputs in the log of one monitor, beside a healthy one of the same database and process.

    python -m tests.benchmarks.hostile [--only PART_OF_A_NAME] [--mode stop|skip|quarantine] [--fast] [--json]

Each case of ``hostile_cases.py`` runs in a child process of its own, once for each mode of ``broken`` in which it makes
a difference, with limits of time and memory. One line each: what came of it while the log was hostile (``rows``: all of
them were taken as they should; ``told``: one clear message; ``aside``: listed for ``opmon inputs``), what is missing or
doubled once the log was mended, the rows that were lost for good and counted, whether the healthy monitor took all it
had, the memory at its peak and the seconds. The last line says how many hold. ``--fast`` leaves out the large ones.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opmon.config import Settings
from opmon.monitor import Monitor
from opmon.stages.open import open_round
from opmon.store import rounds, set_aside
from tests.benchmarks.hostile_cases import CASES, FEATURES, OPEN, Case, Log, lines, table

SECONDS, MOST_MB = 300, 2000
LONGEST_MESSAGE = 1500
MODEL = "models:/small/1"


@dataclass
class Outcome:
    """What came of a case."""

    case: str
    mode: str
    came: str = "rows"
    missing: int = 0
    doubled: int = 0
    counted: int = 0
    """Rows that were lost for good, as the rounds say."""
    healthy: bool = True
    mb: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        said = "ok  " if self.holds else "FAIL"
        line = (
            f"{said} {self.case:52} {self.mode:10} {self.came:12} missing {self.missing}  doubled {self.doubled}  "
            f"counted {self.counted:3}  healthy {'yes' if self.healthy else 'NO '}  {self.mb:5} MB  "
            f"{self.seconds:5.1f} s"
        )
        return "\n       ".join([line, *self.wrong])


@dataclass
class Pair:
    """The monitor of a hostile log and a healthy one, over one database."""

    folder: Path
    uri: str
    case: Case
    log: Log
    outcome: Outcome
    told: list[str] = field(default_factory=list)
    windows: int = 0

    def monitor(self, name: str, **changes: Any) -> Monitor:
        plain: dict[str, Any] = {
            "model": MODEL,
            "inputs": {"features": list(FEATURES)},
            "columns": {"id": "input_id"},
            "round": {"min_inputs": 1, "max_inputs": 20_000_000, "max_age": "3650d", "max_unscorable": 1},
            "sampler": {"type": "srs", "budget": 5},
            "rules": [],
            "drift": {"enabled": False},
        }
        written = {
            "mlflow": {"tracking_uri": self.uri},
            "database": f"sqlite:///{self.folder / 'opmon.db'}",
            "monitors": {name: plain | changes},
        }
        settings = Settings.from_mapping(written, self.folder)
        return Monitor.from_settings(settings, name, clock=self.clock)

    def clock(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.log.clock_seconds)

    def hostile(self) -> Monitor:
        log = self.log
        path = f"{log.store}/log" if self.case.stored else str(log.folder)
        source = log.source or {"path": path, "broken": log.mode}
        return self.monitor("hostile", source=source, **log.monitor)

    def healthy(self) -> Monitor:
        return self.monitor("healthy", source={"path": str(self.folder / "healthy")})

    def cycle(self) -> list[str]:
        """One cycle of both, as the service runs them; what the hostile one said."""
        self.windows += 1
        path = self.folder / "healthy" / f"{self.windows}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lines(table(20 * self.windows, 20)))
        said = []
        try:
            said = sorted({str(problem) for problem in self.hostile().advance().problems})
        except Exception as exc:
            self.outcome.wrong.append(f"a fault: {type(exc).__name__}: {exc}")
            traceback.print_exc()
        problems = self.healthy().advance().problems
        self.outcome.wrong += [f"the healthy one: {problem}" for problem in problems]
        return said

    def met(self) -> None:
        """Two cycles over the hostile log, and what they say."""
        said = [self.cycle(), self.cycle()]
        messages = {message for each in said for message in each}
        self.told += sorted(messages)
        if any(len(each) > 1 for each in said):
            self.outcome.wrong.append(f"{len(said[0])} messages where one is enough: {said[0]}")
        for message in messages:
            if self.log.named not in message:
                self.outcome.wrong.append(f"a message does not name {self.log.named!r}: {message}")
            if len(message) > LONGEST_MESSAGE or not message.isprintable():
                self.outcome.wrong.append(f"a message is no clear line: {message[:300]!r}")


def run(case: Case, mode: str, uri: str, folder: Path, store: str | None = None) -> Outcome:
    """One case in this process."""
    outcome = Outcome(case.name, mode)
    log = Log(folder / "log", mode, store)
    log.folder.mkdir()
    pair = Pair(folder, uri, case, log, outcome)
    began = time.perf_counter()
    steps = case.steps(log)
    for step in steps:
        if step == OPEN:
            with pair.hostile()._at_work() as work:
                open_round(work)
            continue
        pair.met()
        outcome.came = _came(pair)
        if log.at_once and mode != "stop" and pair.told:
            outcome.wrong.append(f"the others wait: {pair.told[0]}")
        for part in log.forgotten:
            pair.hostile().give_up_inputs(part)
    for number in log.abandoned:
        pair.hostile().abandon(number, "its column is none of the model's")
    after = [*pair.cycle(), *pair.cycle()]
    if after:
        outcome.wrong.append(f"once it was mended: {after[0]}")
    outcome.seconds = round(time.perf_counter() - began, 1)
    outcome.mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    _count(pair)
    return outcome


def _came(pair: Pair) -> str:
    if pair.told:
        return "told"
    monitor = pair.hostile()
    with monitor.store.read() as connection:
        return "aside" if set_aside.of_monitors(connection, ["hostile"]).get("hostile") else "rows"


def _count(pair: Pair) -> None:
    """What the rounds hold against what they should."""
    outcome, log = pair.outcome, pair.log
    taken, outcome.counted = _taken(pair.hostile(), pair.folder / "frames")
    good = pa.chunked_array([each() for each in log.good], pa.string())
    outcome.missing = len(good) - pc.sum(pc.is_in(good, taken)).as_py() if len(good) else 0
    outcome.doubled = len(taken) - pc.count_distinct(taken).as_py()
    foreign = len(taken) - (pc.sum(pc.is_in(taken, good.combine_chunks())).as_py() or 0)
    healthy, _ = _taken(pair.healthy(), pair.folder / "frames-healthy")
    outcome.healthy = sorted(healthy.to_pylist()) == sorted(f"r{20 + k}" for k in range(20 * pair.windows))
    checks = {
        "rows are missing": outcome.missing,
        "rows are doubled": outcome.doubled,
        "rows were taken that should not be": foreign,
        "the healthy monitor did not take all it had": not outcome.healthy,
        f"{outcome.counted} rows are counted as lost, and {log.damaged} are": outcome.counted != log.damaged,
        f"it took {outcome.mb} MB, more than {MOST_MB}": outcome.mb > MOST_MB,
    }
    outcome.wrong += [said for said, is_so in checks.items() if is_so]


def _taken(monitor: Monitor, folder: Path) -> tuple[pa.ChunkedArray, int]:
    """The ids in the frames of all rounds, and how many inputs could not be scored."""
    name, ids, lost = monitor.settings.name, [], 0
    with monitor.store.read() as connection:
        found = [rounds.get(connection, name, k + 1) for k in range(rounds.count(connection, name))]
    for round_ in found:
        lost += round_.unscorable or 0
        if round_.run_id is not None:
            frame = monitor.registry.download(round_.run_id, "frame.parquet", folder / str(round_.number))
            ids += pq.read_table(frame, columns=["id"])["id"].cast(pa.string()).chunks
    return pa.chunked_array(ids, pa.string()), lost


def register(uri: str, folder: Path) -> None:
    """A small ONNX model, which answers at once."""
    import mlflow
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(1).normal(size=(len(FEATURES), 3)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"])]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", len(FEATURES)])]
    gives = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph(nodes, "linear", given, gives, [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri("")
    mlflow.create_experiment("training-small", (folder / "artifacts").as_uri())
    mlflow.set_experiment("training-small")
    with mlflow.start_run():
        logged = mlflow.onnx.log_model(model, name="model", pip_requirements=["onnxruntime"])
    mlflow.register_model(logged.model_uri, "small")


def _child(answer: Connection, case: str, mode: str, uri: str, store: str | None, work: Path) -> None:
    with tempfile.TemporaryDirectory(dir=work) as folder:  # goes with it where the child is killed
        try:
            answer.send(run(CASES[case], mode, uri, Path(folder), store))
        except BaseException as exc:
            traceback.print_exc()
            answer.send(Outcome(case, mode, wrong=[f"{type(exc).__name__}: {exc}"]))


def apart(case: Case, mode: str, uri: str, store: str | None, work: Path) -> Outcome:
    """One case in a process of its own, which may die or never end."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(its, case.name, mode, uri, store, work))
    process.start()
    its.close()
    try:
        found: Outcome = mine.recv() if mine.poll(SECONDS) else Outcome(case.name, mode, wrong=["it does not end"])
    except EOFError:
        process.join()
        found = Outcome(case.name, mode, wrong=[f"the process died: {process.exitcode}"])
    process.kill()
    process.join()
    return found


@contextmanager
def stores() -> Iterator[str]:
    """A server that speaks S3; the environment has its address."""
    import logging

    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    said = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}
    for name, value in {**said, "REGION": "us-east-1", "EC2_METADATA_DISABLED": "true"}.items():
        os.environ[f"AWS_{name}"] = value
    yield said["ENDPOINT_URL"]
    server.stop()


def main() -> None:
    import httpx

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--mode")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = [
        (case, mode)
        for case in CASES.values()
        for mode in case.modes
        if options.only in case.name and options.mode in (None, mode) and not (options.fast and case.large)
    ]
    held = 0
    with tempfile.TemporaryDirectory() as work, stores() as server:
        uri = f"sqlite:///{Path(work) / 'mlflow.db'}"
        making = multiprocessing.get_context("spawn").Process(target=register, args=(uri, Path(work)))
        making.start()
        making.join()
        for number, (case, mode) in enumerate(chosen):
            bucket = f"bucket-{number}"
            httpx.put(f"{server}/{bucket}").raise_for_status()
            outcome = apart(case, mode, uri, f"s3://{bucket}", Path(work))
            held += outcome.holds
            print(json.dumps(asdict(outcome)) if options.json else outcome, flush=True)
    print(f"{held} of {len(chosen)} hold, of {len({case.name for case, _ in chosen})} hostile inputs")
    raise SystemExit(held < len(chosen))


if __name__ == "__main__":
    main()
