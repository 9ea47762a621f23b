"""How often MLflow is asked for a round, on a real server: it does not depend on inputs, measures or slices."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conftest import Workbench
from tests.registry.proxy import proxy_to

MOST_CALLS, MOST_FILES = 14, 20


def test_a_round_is_at_most_fourteen_calls(server: Any, tmp_path: Path, sqlite: str) -> None:
    """Beside its files, each of which is a request of its own, and while its status stays. Drift is reported."""
    with proxy_to(server.uri) as proxy:
        name = f"calls-{uuid.uuid4().hex[:8]}"
        bench = Workbench(tmp_path, proxy.uri, name, "models:/digits@champion")
        rules = [{"type": "accuracy_below", "threshold": 0.05, "name": "floor"}]  # the status stays as it is
        round_ = {"min_inputs": 200, "max_inputs": 5000, "max_age": "3650d"}
        plain = bench.monitor(sqlite, drift={"enabled": True}, round=round_, rules=rules)
        rich = bench.monitor(
            sqlite,
            drift={"enabled": True},
            round=round_,
            rules=rules,
            measures=["balanced_accuracy", "confusion_matrix", *({"recall": {"class": str(k)}} for k in range(10))],
            slices=[{"column": "part"}],
        )
        sizes = [(plain, 200), (plain, 200), (plain, 2000), (plain, 200), (rich, 200), (rich, 2000)]
        told = [_round(proxy, bench, monitor, size) for monitor, size in sizes]
    settled = [told[2], told[3], told[5]]  # the others find the timeline, or fetch what drift is compared with
    for calls, files in settled:
        assert sum(calls.values()) <= MOST_CALLS, calls
        assert files <= MOST_FILES
    assert told[2] == told[3], "another number of inputs, and as many calls"


def _round(proxy: Any, bench: Workbench, monitor: Any, size: int) -> tuple[Counter[str], int]:
    bench.write_window(size, part=["a", "b"] * (size // 2))
    proxy.seen.clear()
    assert monitor.advance().problems == []
    bench.answer(monitor, wrong=0.1)
    cycle = monitor.advance()
    assert (cycle.problems, cycle.closed) == ([], 1)
    seen = [line.split("?")[0] for line in proxy.seen]
    calls = Counter(line.split("/mlflow/")[1] for line in seen if "/mlflow/" in line)
    return calls, len(seen) - sum(calls.values())
