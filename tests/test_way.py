"""The way of one input from the log to the metric stays short enough to be followed."""

import json
import subprocess
import sys
from pathlib import Path

from tests.made_once import new_mlflow_store

BENCHMARK = Path(__file__).parent / "benchmarks" / "way_of_an_input.py"


def test_an_input_goes_from_the_log_to_the_metric_in_forty_calls_with_twelve_values(tmp_path: Path) -> None:
    new_mlflow_store(tmp_path)
    command = [sys.executable, BENCHMARK, "--json", "--mlflow", tmp_path / "mlflow.db"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    way = json.loads(done.stdout.splitlines()[-1])

    assert 30 <= way["steps"] <= 40
    assert 10 <= len(way["values"]) <= 12, way["values"]
