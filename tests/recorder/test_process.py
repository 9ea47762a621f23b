"""Processes that end, are told to end, are killed and fork: every record is written or counted, and none twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opmon
from tests.patience import LONGEST

COUNTER = """
import mmap, os, signal, sys, threading, time
import opmon

counter = open({counter!r}, "r+b"); shared = mmap.mmap(counter.fileno(), 4096)
def count(place, number):
    shared[place * 8:place * 8 + 8] = number.to_bytes(8, "little")
"""
"""Counts, in a file that outlives the process, what was recorded."""


@pytest.fixture
def run(tmp_path: Path, left: Any) -> Callable[..., subprocess.Popen[str]]:
    """Starts Python with a recorder, and waits for its first word."""
    (tmp_path / "counter").write_bytes(bytes(4096))

    def start(script: str, arguments: str = "") -> subprocess.Popen[str]:
        begin = COUNTER.format(counter=str(tmp_path / "counter"))
        made = f"recorder = opmon.Recorder({str(left.folder)!r}, exit_seconds=120, {arguments})"
        process = subprocess.Popen(
            [sys.executable, "-c", f"{begin}\n{made}\n{textwrap.dedent(script)}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n", process.communicate()[1]
        return process

    return start


def counted(tmp_path: Path, places: int = 512) -> int:
    data = (tmp_path / "counter").read_bytes()
    return sum(int.from_bytes(data[at * 8 : at * 8 + 8], "little") for at in range(places))


def ended(process: subprocess.Popen[str]) -> int:
    _, errors = process.communicate(timeout=LONGEST)
    assert "Traceback" not in errors, errors
    return process.returncode


THREADS = """
    def work(place, most):
        for number in range(1, most + 1):
            recorder.record([float(number)] * 20, number)
            count(place, number)
    threads = [threading.Thread(target=work, args=(place, {most}), daemon=True) for place in range(8)]
    print("up", flush=True)
    [thread.start() for thread in threads]
"""


def test_eight_threads_and_a_normal_end(run: Any, left: Any, tmp_path: Path) -> None:
    process = run(THREADS.format(most=500) + "    [thread.join() for thread in threads]\n", "rows_per_file=999")

    assert ended(process) == 0
    assert left.counts() == (4000, 4000, 0)
    assert len(set(left.table()["id"].to_pylist())) == 4000 == counted(tmp_path)


def test_eight_threads_and_sigterm(run: Any, left: Any, tmp_path: Path) -> None:
    process = run(
        THREADS.format(most=10**9) + "    [thread.join() for thread in threads]\n",
        "buffer_rows=2000, rows_per_file=500",
    )
    while counted(tmp_path) < 3000:
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)

    assert ended(process) == -signal.SIGTERM
    recorded, written, dropped = left.counts()
    assert recorded == written + dropped
    assert len(set(left.table()["id"].to_pylist())) == written
    not_counted_yet = 8  # one a thread
    assert counted(tmp_path) <= recorded <= counted(tmp_path) + not_counted_yet


def test_sigterm_while_the_main_thread_records(run: Any, left: Any, tmp_path: Path) -> None:
    process = run(
        """
        print("up", flush=True)
        for number in range(1, 10**9):
            recorder.record({"x": number}, number)
            count(0, number)
        """,
        "buffer_rows=1000, rows_per_file=100",
    )
    while counted(tmp_path) < 500:
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)

    assert ended(process) == -signal.SIGTERM
    recorded, written, dropped = left.counts()
    assert recorded == written + dropped
    assert counted(tmp_path) <= recorded <= counted(tmp_path) + 1


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", 7),
        ("signal.signal(signal.SIGTERM, lambda *_: os._exit(8))", 8),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 0),
    ],
)
def test_the_process_handles_sigterm_as_it_did(run: Any, left: Any, tmp_path: Path, handler: str, code: int) -> None:
    process = run(
        f"""
        recorder.close()
        {handler}
        recorder = opmon.Recorder({str(left.folder)!r}, exit_seconds=120)
        recorder.record([1.0]); count(0, 1)
        print("up", flush=True)
        time.sleep(0.2 if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN else 60)
        """
    )
    process.send_signal(signal.SIGTERM)

    assert ended(process) == code
    assert left.counts() == (1, 1, 0)


def test_after_the_last_recorder_is_closed_sigterm_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM)
    first, second = opmon.Recorder("nowhere"), opmon.Recorder("nowhere")
    assert signal.getsignal(signal.SIGTERM) is not before
    first.close()
    assert signal.getsignal(signal.SIGTERM) is not before
    second.close()
    assert signal.getsignal(signal.SIGTERM) is before


def test_four_forked_processes(run: Any, left: Any, tmp_path: Path) -> None:
    process = run(
        """
        for number in range(50):
            recorder.record([-1.0]); count(9, number + 1)
        children = []
        for place in range(4):
            child = os.fork()
            if not child:
                for number in range(1, 501):
                    recorder.record([float(place)], number)
                    count(place, number)
                sys.exit(0)
            children.append(child)
        for number in range(50, 100):
            recorder.record([-1.0]); count(9, number + 1)
        print("up", flush=True)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        """
    )

    assert ended(process) == 0
    assert left.counts() == (2100, 2100, 0)
    assert len(left.by_writer()) == 5
    table = left.table()
    assert len(set(table["id"].to_pylist())) == 2100 == counted(tmp_path)
    assert sorted({value[0] for value in table["features"].to_pylist()}) == [-1, 0, 1, 2, 3]


def test_a_process_of_multiprocessing_ends_without_losing_a_record(run: Any, left: Any) -> None:
    process = run(
        """
        import multiprocessing
        def work():
            for number in range(100):
                recorder.record([float(number)])
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start(); child.join()
        print("up", flush=True)
        """
    )

    assert ended(process) == 0
    assert left.counts() == (100, 100, 0)


def test_a_killed_process_loses_what_waits_and_nothing_else(run: Any, left: Any, tmp_path: Path) -> None:
    process = run(
        """
        print("up", flush=True)
        for number in range(1, 10**9):
            recorder.record([float(number)] * 10, number)
            count(0, number)
            if recorder.stats().waiting > 300:
                recorder.flush()
        """,
        "rows_per_file=100, seconds_per_file=3600",
    )
    while counted(tmp_path) < 2000:
        assert process.poll() is None
    process.kill()

    assert ended(process) == -signal.SIGKILL
    _, written, dropped = left.counts()
    table = left.table()
    assert dropped == 0
    assert counted(tmp_path) - 400 <= written == table.num_rows <= counted(tmp_path) + 1
    assert table["prediction"].to_pylist() == list(range(1, written + 1))


def test_a_full_disk_loses_what_does_not_fit_and_says_so(run: Any, left: Any) -> None:
    process = run(
        """
        import resource
        recorder.record([0.0]); recorder.flush()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        recorder.record([0.0])
        assert not recorder.flush(0.2)
        for number in range(150):
            recorder.record([float(number)])
        stats = recorder.stats()
        assert stats.dropped == {"disk_full": 51}, stats
        assert "File too large" in stats.trouble, stats
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        print("up", flush=True)
        """,
        "buffer_rows=100",
    )

    assert ended(process) == 0
    assert left.counts() == (152, 101, 51)
    assert left.told()[-1]["now"]["dropped"] == {"disk_full": 51}
    assert [file.name for file in left.folder.glob("*/.*")] == []


def test_an_unreachable_store_is_tried_again(left: Any, tmp_path: Path) -> None:
    left.folder.write_text("a file where the folder should be")
    with opmon.Recorder(str(left.folder), buffer_rows=10) as recorder:
        for number in range(12):
            recorder.record([float(number)])
        assert not recorder.flush(0.05)
        recorder.record([0.0])
        assert recorder.stats().dropped["unreachable"] >= 1
        left.folder.unlink()

    recorded, written, dropped = left.counts()
    assert (recorded, written, dropped) == (13, 10, 3)
