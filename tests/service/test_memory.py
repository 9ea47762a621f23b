"""Memory that is free goes back to the system, also what other threads had."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import LONGEST

_PROGRAM = """
import ctypes, threading
import psutil
from opmon.service.memory import few_heaps, give_back

few_heaps()
kept, libc = [], ctypes.CDLL("libc.so.6")
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def work():
    blocks = [libc.malloc(1000) for _ in range(50_000)]
    for block in blocks:
        ctypes.memset(block, 1, 1000)
    kept.append(blocks[-1])  # at the end of its heap, which so cannot shrink by itself
    for block in blocks[:-1]:
        libc.free(block)

for _ in range(2):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
before = psutil.Process().memory_info().rss
give_back()
print(before - psutil.Process().memory_info().rss)
"""


def test_what_is_free_is_given_back() -> None:
    said = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=LONGEST)
    assert int(said.stdout) > 20_000_000


_CIRCLES = """
import psutil
import pyarrow as pa
from matplotlib.figure import Figure
from opmon.service.memory import few_heaps, give_back

few_heaps()

def drawn():
    figure = Figure(figsize=(9, 4))
    figure.add_subplot().imshow([[0.0] * 1000] * 1000)
    table = pa.table({"x": pa.array(range(3_000_000))})

drawn()
give_back()
before = psutil.Process().memory_info().rss
for _ in range(8):
    drawn()
give_back()
print(psutil.Process().memory_info().rss - before)
"""


def test_what_only_holds_itself_is_let_go() -> None:
    done = subprocess.run([sys.executable, "-c", _CIRCLES], capture_output=True, text=True, timeout=LONGEST, check=True)
    assert int(done.stdout) < 20_000_000, "eight figures of 8 MB each are gone, and what Arrow had"


_MANY = """
import gc
import psutil
from opmon.reports.estimate_figure import EstimatePoint, figure_bytes
from opmon.service.memory import few_heaps, give_back

points = [EstimatePoint(number, 0.8, 0.7, 0.9) for number in range(20)]
few_heaps()
for _ in range(8):
    figure_bytes(points)
give_back()
before = len(gc.get_objects(0) + gc.get_objects(1) + gc.get_objects(2)) + gc.get_freeze_count()
for _ in range(40):
    figure_bytes(points)
print(len(gc.get_objects(0) + gc.get_objects(1) + gc.get_objects(2)) + gc.get_freeze_count() - before)
"""


def test_figures_do_not_pile_up_until_what_is_free_is_given_back() -> None:
    """Each of a few thousand objects: how much a worker once needs at the most, it keeps."""
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, timeout=LONGEST, check=True)
    assert int(done.stdout) < 12_000
