"""The log of a language model behind an address: prompts, answers, and, not in it, whether each answer is good."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HOSTILE = (
    "",
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://example.com")',
    "line one\nline two\n\n```python\nprint('x')\n```",
    "مرحبا 👋🏽 Ελληνικά",
    "word " * 4000,
)


def registered(workbench: Any, name: str = "assistant") -> str:
    """The address of a registered version that has no files, as that of a remote API has."""
    import mlflow

    from tests.conftest import point_mlflow_at

    point_mlflow_at(workbench.tracking_uri)
    client = mlflow.MlflowClient()
    run = client.create_run(client.get_experiment_by_name("training").experiment_id).info
    with_that_name = [each.name for each in client.search_registered_models(f"name='{name}'")]
    if not with_that_name:
        client.create_registered_model(name)
    version = client.create_model_version(name, f"{run.artifact_uri}/nothing", run.run_id)
    return f"models:/{name}/{version.version}"


def write_answers(folder: Path, count: int = 200, good: float = 0.8, seed: int = 0) -> dict[str, bool]:
    """Write the log, and say which of its answers are good. Some are hostile, one is missing."""
    rng = random.Random(seed)
    truth: dict[str, bool] = {}
    lines = []
    for k in range(count):
        a, b = rng.randint(2, 99), rng.randint(2, 99)
        truth[f"q{k}"] = rng.random() < good
        answer: str | None = f"{a} + {b} is {a + b if truth[f'q{k}'] else a - b}."
        if k % 25 == 3:
            answer, truth[f"q{k}"] = HOSTILE[(k // 25) % len(HOSTILE)], False
        row: dict[str, Any] = {
            "id": f"q{k}",
            "prompt": f"What is {a} + {b}?\nSay it in one sentence.",
            "answer": answer,
        }
        lines.append(json.dumps({**row, "usage": {"tokens": rng.randint(5, 90)}}))
    lines.append(json.dumps({"id": "lost", "prompt": "Are you there?", "answer": None, "usage": {"tokens": 0}}))
    folder.mkdir(exist_ok=True)
    (folder / f"log-{seed}.jsonl").write_text("\n".join(lines) + "\n")
    return truth


def judged(workbench: Any, **changes: Any) -> Mapping[str, Any]:
    """The keys of a monitor that has these answers judged."""
    return {
        "model": registered(workbench),
        "problem": "judged",
        "inputs": {},
        "source": {"path": "answers"},
        "columns": {"id": "id", "prediction": "answer"},
        "round": {"min_inputs": 100, "max_inputs": 500, "max_age": "3650d"},
        "sampler": {"budget": 80},
        "rules": [{"type": "accuracy_level", "threshold": 0.95, "name": "floor"}],
        **changes,
    }
