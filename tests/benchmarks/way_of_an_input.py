"""The way of one input from the log to the metric: which function hands it to which, and as what.

    python tests/benchmarks/way_of_an_input.py [--all] [--json] [--mlflow FILE]

A small real round runs under ``sys.setprofile``: a Parquet file, an ONNX model in MLflow, labels, an estimate, the
metric. A step is a call from one file of opmon to a named public function of another, in whose arguments or result the
input is: as rows, columns or numbers (Arrow, NumPy), as a value that holds them, as what its label came to. Each
function counts once, where the input first comes to it. No steps are: what happens inside a file, which is a page to
read, or in a function inside another; properties; what arithmetic calls (samplers, estimators, the meaning of a model's
outputs); and what ends elsewhere than in the metric, such as verdicts, the drift report, what is expected before
labels, the rolling and the corrected estimate, further measures, slices, pages and descriptions. ``--all`` prints these
too. The value types are opmon's own classes that hold the input on the way.

``PYTHONPATH=CHECKOUT`` measures another checkout of opmon.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import tempfile
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STEPS, VALUES = 40, 12
ARITHMETIC = (
    "samplers/",
    "estimators/",
    "decisions/",
    "scoring/outputs/",
    "scoring/inputs/classes",
    "jobs/served",
    "stages/served",
    "response",
    "values",
    "adjudication",
    "types",
)
ELSEWHERE = re.compile(
    "queries/|causes/|expected/|measures/|store/(tallies|grouped|seen)|jobs/identity"
    "|reports/(labels|summary|failures|estimate_figure|notes)"
    "|stages/(rolling|drift|expecting|points|weights|correction|decide|judge|version_tags|captured|notes|round_files)"
    "|stages/(rolled|measures|slices|failing|failure_groups|looked_at|failure_pictures|class_table):"
    r"|estimators/.*\.tally$"
)
TOLD = ("ScoreJob", "Assembled", "Tally")
"""What tells how inputs are handled or how many there were, and holds none."""
WAITING = ("sources/patient:", "waiting:")
"""Who waits for a source hands on what it gives; here it is asked without another thread."""
LOCAL = ".<locals>"
CARRIERS = (pa.RecordBatch, pa.Table, pa.Array, pa.ChunkedArray, np.ndarray)


class Way:
    """The calls that hand the input on, in the order in which they are first made."""

    def __init__(self) -> None:
        import opmon

        self.root = Path(opmon.__file__).parent
        self.steps: dict[tuple[str, str], set[str]] = {}
        self.aside: dict[tuple[str, str], set[str]] = {}
        self.names: dict[CodeType, str | None] = {}

    def hear(self, frame: FrameType, event: str, result: Any) -> None:
        if event not in ("call", "return"):
            return
        callee = self.name(frame.f_code)
        if callee is None or LOCAL in callee:
            return
        values = [result] if event == "return" else [frame.f_locals[name] for name in arguments(frame.f_code)]
        held = {kind for value in values for kind in carried(value)}
        if not held:
            return
        caller = self.caller(frame)
        if caller is not None:
            (self.steps if self.counts(caller, callee) else self.aside).setdefault((caller, callee), set()).update(held)

    def counts(self, caller: str, callee: str) -> bool:
        """Whether the call is a step."""
        known = next((step for step in self.steps if step[1] == callee), None)
        return (
            caller.split(":")[0] != callee.split(":")[0]
            and (known is None or known[0] == caller)
            and not callee.rpartition(":")[2].rpartition(".")[2].startswith("_")
            and not caller.startswith(ARITHMETIC)
            and not (ELSEWHERE.match(caller) or ELSEWHERE.match(callee))
            and not is_property(callee)
        )

    def caller(self, frame: FrameType) -> str | None:
        """The function that calls; for one inside it that function, unless another called that."""
        back, inside = frame.f_back, None
        while back is not None:
            name = self.name(back.f_code)
            if name is not None and LOCAL not in name:
                return name
            inside = inside or name
            back = back.f_back
        return None if inside is None else inside.partition(LOCAL)[0]

    def name(self, code: CodeType) -> str | None:
        """``folder/file:function`` of a named function of opmon; None for all others."""
        if code not in self.names:
            path = Path(code.co_filename)
            named = path.is_relative_to(self.root) and "<" not in code.co_name and not code.co_name.startswith("__")
            place = f"{path.relative_to(self.root).with_suffix('')}:{code.co_qualname}" if named else None
            self.names[code] = None if place is None or place.startswith(WAITING) else place
        return self.names[code]


def arguments(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def is_property(name: str) -> bool:
    place, _, qualified = name.partition(":")
    module = sys.modules.get(f"opmon.{place.replace('/', '.')}")
    owner, _, attribute = qualified.rpartition(".")
    return isinstance(vars(getattr(module, owner, object)).get(attribute), property) if owner else False


def carried(value: Any, depth: int = 2) -> set[str]:
    """As what a value holds the input: names of opmon's own classes, or of Arrow's and NumPy's."""
    if isinstance(value, CARRIERS):
        return {next(each.__name__ for each in CARRIERS if isinstance(value, each))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ in ANSWERS:
            return {type(value).__name__}
        if type(value).__name__ in TOLD:
            return set()
        fields = [getattr(value, each.name, None) for each in dataclasses.fields(value)]
        return {type(value).__name__} if depth and any(carried(each, depth - 1) for each in fields) else set()
    if isinstance(value, Mapping):
        return set().union(*(carried(each, depth - 1) for each in list(value.values())[:3])) if depth else set()
    if isinstance(value, list | tuple):
        return set().union(*(carried(each, depth - 1) for each in value[:3])) if depth else set()
    return set()


ANSWERS = ("Asked", "Task", "Label", "Part", "Estimate", "Revision")
"""What holds the input otherwise than as rows and columns."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also the calls that are no steps")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--mlflow", type=Path, help="an empty tracking store on SQLite; without it one is made")
    options = parser.parse_args()
    way = Way()
    with tempfile.TemporaryDirectory() as folder:
        walk(Path(folder), way, options.mlflow or Path(folder, "mlflow.db"))
    own = sorted({kind for held in way.steps.values() for kind in held} - {each.__name__ for each in CARRIERS})
    if options.json:
        print(json.dumps({"steps": len(way.steps), "values": own}))
        return
    for number, ((caller, callee), held) in enumerate(way.steps.items(), 1):
        print(f"{number:3}  {caller:48} -> {callee:56} {', '.join(sorted(held))}")
    if options.all:
        for (caller, callee), held in way.aside.items():
            print(f"     {caller:48} -> {callee:56} {', '.join(sorted(held))}")
    print(f"\n{len(way.steps)} steps (at most {STEPS}), {len(own)} values (at most {VALUES}): {', '.join(own)}")


def walk(folder: Path, way: Way, mlflow: Path) -> None:
    """A round from its file to its metric; only the monitor's own work is listened to."""
    from large_round import FEATURES, register

    from opmon.config import Settings
    from opmon.monitor import Monitor
    from opmon.store import queue
    from opmon.types import Label

    uri = f"sqlite:///{mlflow}"
    register(uri, folder)
    rng = np.random.default_rng(0)
    columns = {"input_id": [f"i{k}" for k in range(200)], "said": ["0"] * 200}
    columns |= {name: rng.normal(size=200).astype(np.float32) for name in FEATURES}
    (folder / "log").mkdir()
    pq.write_table(pa.table(columns), folder / "log" / "a.parquet")
    monitor = {
        "model": "models:/large/1",
        "source": {"path": "log"},
        "inputs": {"features": list(FEATURES)},
        "columns": {"id": "input_id", "prediction": "said"},
        "round": {"min_inputs": 200, "max_skew": 1.0},
        "sampler": {"type": "sups", "budget": 50},
        "drift": {"enabled": False},
    }
    settings = Settings.from_mapping({"mlflow": {"tracking_uri": uri}, "monitors": {"large": monitor}}, folder)
    watch = Monitor.from_settings(settings, "large")
    listened(way, watch)
    with watch.store.write() as connection:
        now = datetime.now(UTC)
        labels = [Label(task.id, "ann", "0", now) for task in queue.open_tasks(connection, "large")]
        queue.record(connection, labels, now)
    cycle = listened(way, watch)
    if cycle.closed != 1:
        raise SystemExit(f"the round did not close: {cycle.problems or cycle}")


def asked_here() -> None:
    """Let sources be asked in the thread that wants them: which function hands on to which is not seen across two."""
    from opmon.waiting import Asking

    Asking.call = lambda self, function: function()  # type: ignore[method-assign]
    Asking.each = lambda self, items, size: iter(items())  # type: ignore[method-assign]


def listened(way: Way, watch: Any) -> Any:
    asked_here()
    threading.setprofile(way.hear)
    sys.setprofile(way.hear)
    try:
        return watch.advance()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


if __name__ == "__main__":
    main()
