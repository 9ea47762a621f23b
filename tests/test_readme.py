"""What the README shows works as it stands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configurations_load(text: str, tmp_path: Path) -> None:
    from opmon.config import Settings

    Settings.from_mapping(yaml.safe_load(text), tmp_path)


def test_the_gate_runs_the_commands_shown() -> None:
    shown = blocks("bash")[:2]
    script = (ROOT / ".ci" / "run").read_text()
    found = re.search(r"^command_after\(\).*?^}", script, re.DOTALL | re.MULTILINE)
    assert found
    for words, command in zip(("Set up and run the demo", "Set up and run the tests"), shown, strict=True):
        assert f"command_after '{words}'" in script
        done = subprocess.run(
            ["bash", "-c", f"{found[0]}\ncommand_after '{words}'"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout == command


def test_every_command_and_file_named_is_there() -> None:
    from opmon.cli import COMMANDS

    for command in set(re.findall(r"opmon (\w+)", " ".join(blocks("bash")))) - {"demo"}:
        assert command in COMMANDS
    for path in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / path).exists(), path
