"""Models that take all memory there is fail alone: the process lives, has its memory back, and other models run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opmon.ceiling import Ceiling
from tests.patience import LONGEST
from tests.security import graphs

MEGABYTE = 1 << 20
LEFT = 700
"""Megabytes that the machine seems to have."""
GREEDY = {
    "doubled": graphs.doubled(),
    "gathered": graphs.gathered(),
    "in a sequence": graphs.in_a_sequence(),
    "of text": graphs.of_text(),
    "in texts": graphs.in_texts(),
    "expanded by its input": graphs.by_its_input("Expand"),
    "filled by its input": graphs.by_its_input("ConstantOfShape"),
    "a gigabyte": graphs.giant([1 << 28]),
}
_PROGRAM = (
    f"LEFT = {LEFT}\n"
    + """
import gc, json, sys, threading, time
from pathlib import Path
import numpy as np, pyarrow as pa
from opmon.ceiling import ceiling
from opmon.errors import OutOfMemory
from opmon.scoring.scorer import Scorer
from opmon.service.memory import give_back
from opmon.types import Batch

machine = Path(sys.argv[1])
ceiling.proc = ceiling.groups = machine
rows = pa.record_batch({"x": pa.array(np.ones((64, 6), np.float32).tolist(), pa.list_(pa.float32()))})

def scored(path):
    scorer = Scorer.open(path, "classification", device="cpu")
    return sum(len(told.rows) for told in scorer.score([Batch(0, 0, rows)]))

def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) >> 10

def tell():
    first = resident()
    while True:  # what this process takes, the machine has no more
        left = max(0, LEFT + first - resident()) << 10
        (machine / "new").write_text(f"MemTotal: 4194304 kB\\nMemAvailable: {left} kB\\n")
        (machine / "new").rename(machine / "meminfo")
        time.sleep(0.02)

good, *bad = map(Path, sys.argv[2:])
threading.Thread(target=tell, daemon=True).start()
with ceiling.held():
    assert scored(good) == 64
    for path in bad:
        before, began = resident(), time.monotonic()
        try:
            raise SystemExit(f"{path.name} gave {scored(path)} answers")
        except OutOfMemory as exc:
            why = str(exc)
        took = time.monotonic() - began
        gc.collect()
        give_back()
        print(json.dumps([path.name, why, resident() - before, took, scored(good)]))
"""
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """What the system tells of a machine that has little left."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "status").symlink_to("/proc/self/status")
    (folder / "self" / "cgroup").write_text("0::/\n")
    told(folder, left=LEFT)
    return folder


def told(folder: Path, left: int, total: int = 4096, swap: int = 0) -> None:
    numbers = {"MemTotal": total, "MemAvailable": left, "SwapFree": swap}
    (folder / "meminfo").write_text("".join(f"{name}: {number * 1024} kB\n" for name, number in numbers.items()))


def test_a_model_that_takes_all_memory_fails_alone(machine: Path, tmp_path: Path) -> None:
    models = {"good": graphs.written([graphs.PRODUCT]), **GREEDY}
    paths = [tmp_path / f"{name}.onnx" for name in models]
    for path, content in zip(paths, models.values(), strict=True):
        path.write_bytes(content)
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(machine), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    outcomes = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [name for name, *_ in outcomes] == [path.name for path in paths[1:]]
    for name, why, kept, took, answers in outcomes:
        assert "the memory of the device (cpu) does not suffice for x float32[1, 6]" in why, name
        assert kept < 200, name
        assert took < 60, name
        assert answers == 64, name


def test_little_left_stops_models_before_others_are_refused(machine: Path) -> None:
    own = Ceiling(machine, machine)
    assert not own.is_near()
    told(machine, left=20_000, total=32_000)
    with own.held():
        assert not own.is_near()
        told(machine, left=1000, total=32_000)
        assert own.is_near()
        told(machine, left=1000, total=32_000, swap=4000)
        assert not own.is_near()
    assert not own.is_near()


def test_the_limit_of_a_container_counts_and_what_it_read_from_files_does_not(machine: Path) -> None:
    group = machine / "kubepods" / "pod"
    group.mkdir(parents=True)
    (machine / "self" / "cgroup").write_text("0::/kubepods/pod/own\n")
    stat = {"inactive_file": 50, "active_file": 30, "anon": 100}
    (group / "memory.stat").write_text("".join(f"{name} {number * MEGABYTE}\n" for name, number in stat.items()))
    (group / "memory.current").write_text(f"{200 * MEGABYTE}\n")
    (group / "memory.max").write_text("max\n")
    own = Ceiling(machine, machine)
    assert own.left() == LEFT * MEGABYTE
    (group / "memory.max").write_text(f"{512 * MEGABYTE}\n")
    assert own.left() == (512 - 200 + 80) * MEGABYTE
    assert own.spare() == 32 * MEGABYTE


def test_a_container_of_the_first_version_counts(machine: Path) -> None:
    group = machine / "memory"
    group.mkdir()
    (machine / "self" / "cgroup").write_text("5:devices:/x\n4:memory:/docker/abc\n0::/\n")  # as the host calls it
    (group / "memory.limit_in_bytes").write_text(f"{400 * MEGABYTE}\n")
    (group / "memory.usage_in_bytes").write_text(f"{300 * MEGABYTE}\n")
    (group / "memory.stat").write_text(f"cache 1\ntotal_inactive_file {40 * MEGABYTE}\n")
    assert Ceiling(machine, machine).left() == 140 * MEGABYTE


def test_programs_that_are_started_have_no_such_limit(machine: Path) -> None:
    program = (
        "import subprocess, sys; from pathlib import Path; from opmon.ceiling import ceiling, lift\n"
        "ceiling.proc = ceiling.groups = Path(sys.argv[1])\n"
        "with ceiling.held():\n"
        "    print(Path('/proc/self/limits').read_text().split('Max data size')[1].split()[0])\n"
        "    child = subprocess.Popen(['sleep', '60']); lift(child.pid)\n"
        "    print(Path(f'/proc/{child.pid}/limits').read_text().split('Max data size')[1].split()[0]); child.kill()\n"
        "print(Path('/proc/self/limits').read_text().split('Max data size')[1].split()[0])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(machine)], capture_output=True, text=True, check=True)
    own, child, after = ran.stdout.split()
    assert (own.isdigit(), child, after) == (True, "unlimited", "unlimited")
