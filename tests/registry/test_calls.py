"""How often MLflow is asked for a round, on a real server: it does not depend on inputs, measures or slices."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conftest import Workbench
from tests.registry.proxy import proxy_to

MOST_CALLS, WITH_AN_ALARM, MOST_FILES = 11, 15, 20


def test_a_round_is_at_most_fifteen_calls(server: Any, tmp_path: Path, sqlite: str) -> None:
    """Beside its files, each of which is a request of its own. Drift is reported, and some answers are wrong: without a
    failure a round has two files less."""
    with proxy_to(server.uri) as proxy:
        name = f"calls-{uuid.uuid4().hex[:8]}"
        bench = Workbench(tmp_path, proxy.uri, name, "models:/digits@champion")
        rules = [{"type": "accuracy_below", "threshold": 0.5, "name": "floor"}]
        round_ = {"min_inputs": 200, "max_inputs": 5000, "max_age": "3650d"}
        clear = {"type": "srs", "budget": 40}
        plain = bench.monitor(sqlite, drift={"enabled": True}, round=round_, rules=rules, sampler=clear, actions=[])
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
        statuses = [_status(bench, plain)]
        changed = []
        for wrong in (0.95, 0.0):
            changed.append(_round(proxy, bench, plain, 200, wrong))
            statuses.append(_status(bench, plain))
    settled = [told[2], told[3], told[5]]  # the others find the timeline, or fetch what drift is compared with
    for calls, files in settled:
        assert sum(calls.values()) <= MOST_CALLS, calls
        assert files <= MOST_FILES
    assert _but_tags(*told[2]) == _but_tags(*told[3]), "another number of inputs, and as many calls"
    assert statuses == ["healthy", "degraded", "healthy"]
    for calls, files in changed:
        assert sum(calls.values()) <= WITH_AN_ALARM, calls
        assert files <= MOST_FILES


def _round(proxy: Any, bench: Workbench, monitor: Any, size: int, wrong: float = 0.3) -> tuple[Counter[str], int]:
    bench.write_window(size, part=["a", "b"] * (size // 2))
    proxy.seen.clear()
    assert monitor.advance().problems == []
    bench.answer(monitor, wrong=wrong)
    cycle = monitor.advance()
    assert (cycle.problems, cycle.closed) == ([], 1)
    seen = [line.split("?")[0] for line in proxy.seen]
    calls = Counter(line.split("/mlflow/")[1] for line in seen if "/mlflow/" in line)
    return calls, len(seen) - sum(calls.values())


def _but_tags(calls: Counter[str], files: int) -> tuple[dict[str, int], int]:
    """Numbers that are as they were are not written again."""
    return {call: count for call, count in calls.items() if call != "model-versions/set-tag"}, files


def _status(bench: Workbench, monitor: Any) -> str:
    tags = monitor.registry.version_tags(monitor.registry.resolve(bench.model))
    return str(tags[f"opmon.{bench.name}.status"])
