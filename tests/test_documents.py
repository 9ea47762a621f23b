"""What the documents show works as it stands: programs run, configurations load, commands and options are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import opmon
from opmon.cli import CONTEXT, group
from opmon.config import Settings

DOCS = Path(opmon.__path__[0]) / "docs"
GENERATED = {"reference.md"}  # its examples have a test of their own
OF_PLUGINS = {"label-studio.md"}  # of a distribution that is not installed here
NEEDS_A_SERVICE = {"labelling.md", "mlflow.md"}
"""They talk to a service that runs, or to MLflow: tests/test_client.py and the tests of retraining have them."""
CHART = {"image", "worker"}
"""Keys that only values of the chart have."""


def blocks(language: str, *without: str) -> list[Any]:
    found = []
    for path in sorted(DOCS.glob("*.md")):
        if path.name not in {*GENERATED, *without}:
            parts = re.findall(rf"^```{language}\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
            found += [pytest.param(path.name, text, id=f"{path.stem}-{k}") for k, text in enumerate(parts)]
    return found


@pytest.mark.parametrize(("name", "code"), blocks("python"))
def test_programs_run(name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiled = compile(code, name, "exec")
    if name not in NEEDS_A_SERVICE:
        exec(compiled, {})


@pytest.mark.parametrize(("name", "text"), blocks("yaml", *OF_PLUGINS))
def test_configurations_load(name: str, text: str, tmp_path: Path) -> None:
    """Parts of one, too: they are put where they belong."""
    environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "0123456789abcdef0123")
    for each in alternatives(text):
        told = yaml.safe_load(each)
        config = told["config"] if told.keys() & CHART else told
        Settings.from_mapping(whole(config), tmp_path, environment)


def alternatives(text: str) -> list[str]:
    """The lines one by one, where they say the same key several times."""
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    return [text] if len(keys) == len(set(keys)) else text.splitlines()


def whole(part: Mapping[str, Any]) -> dict[str, Any]:
    """A whole configuration with the part in it: keys of the file, or of a monitor."""
    least = {"model": "models:/m/1", "source": {"path": "production/"}}
    if "monitors" in part:
        return {**part, "monitors": {name: {**least, **keys} for name, keys in part["monitors"].items()}}
    if part.keys() <= Settings.model_fields.keys():
        return {**part, "monitors": {"digits": least}}
    return {"monitors": {"digits": {**least, **part}}}


@pytest.mark.parametrize(("name", "text"), blocks("bash"))
def test_commands_and_options_are_there(name: str, text: str) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "opmon" in words[:2] and words[0] in ("opmon", "sudo"):
            require_known(words[words.index("opmon") + 1 :])


def require_known(words: list[str]) -> None:
    """An error of click's where a command, an option or an argument is not there; nothing is run."""
    command: click.Command = group
    context = click.Context(group, info_name="opmon", **CONTEXT)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_parser(context).parse_args(list(words))


def test_links_and_pictures_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for link in re.findall(r"\]\(((?!https?:|mailto:|/docs/)[^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            assert (DOCS / link).exists(), f"{path.name}: {link}"


def test_every_document_can_be_come_by_from_the_quickstart() -> None:
    seen, todo = set(), ["quickstart.md"]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += re.findall(r"\]\(([\w-]+\.md)(?:#[^)]*)?\)", (DOCS / name).read_text("utf-8"))
    assert {path.name for path in DOCS.glob("*.md")} - seen == set()
