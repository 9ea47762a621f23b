"""What ``opmon explain`` says of every plugin there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import opmon
from opmon import plugins
from opmon.cli import group
from opmon.config import Settings

EVERY = [(kind, name) for kind in plugins.GROUPS for name in plugins.names(kind)]


def explain(*arguments: str) -> Any:
    return CliRunner().invoke(group, ["explain", *arguments])


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_everything_that_is_plugged_in_explains_itself_in_plain_text(kind: str, name: str) -> None:
    shown = explain(name, "--kind", kind)
    assert shown.exit_code == 0
    text = shown.output
    assert text.startswith(f"{name} ({kind})\n\n")
    assert len(text.split("\n\n")[1].split()) > 2
    assert not re.search(r"\\\\[A-Za-z]|:\w+:`|``|>>>|\.\. math::", text), "markup"
    told = json.loads(explain(name, "--kind", kind, "--json").output)
    assert set(told["parameters"]) == set(plugins.parameters(plugins.load(kind, name)))


def test_the_page_of_everything_is_up_to_date() -> None:
    written = (Path(opmon.__file__).parent / "docs" / "reference.md").read_text(encoding="utf-8")
    assert explain("--all").output == written, "run: opmon explain --all > opmon/docs/reference.md"


OWN = [
    (kind, name)
    for kind, name in EVERY
    if plugins.load(kind, name).__module__.startswith("opmon.")
    and kind not in ("estimator", "registry", "perturbation")
]


def of_problem(measure: str) -> dict[str, Any]:
    """What a monitor says of the problem that a measure is for."""
    problem = plugins.class_of("measure", measure).problems[0]
    if problem != "judged":
        return {"problem": problem}
    scale = "score" if measure == "mean_score" else "pass_fail"
    return {"problem": problem, "columns": {"prediction": "answer"}, "labels": {"scale": scale}}


@pytest.mark.parametrize(("kind", "name"), OWN)
def test_every_key_is_explained_and_the_example_is_read(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.loads(explain(kind, name, "--json").output)
    assert all(about["text"] for about in told["parameters"].values())
    key, given = next(iter(yaml.safe_load(told["example"]).items()))
    monitor: dict[str, Any] = {"model": "models:/digits/1", "source": {"path": "production"}}
    if key == "labels.provider":
        monitor |= {"labels": {"provider": given}}
    elif key != "executor":
        monitor |= {key: given}
    if kind == "measure":
        monitor |= of_problem(name)
        own = tmp_path / "mine"  # the module that the example of a function of one's own names
        own.mkdir()
        (own / "measures.py").write_text("def gain(truth, prediction, scores, weight):\n    return 0.0\n")
        monkeypatch.syspath_prepend(tmp_path)
    Settings.from_mapping({"monitors": {"digits": monitor}}, tmp_path, environment={})


@pytest.mark.parametrize("name", [name for kind, name in OWN if kind == "measure"])
def test_a_measure_is_explained_in_six_lines(name: str) -> None:
    text = plugins.class_of("measure", name).__doc__ or ""
    assert len([line for line in text.splitlines() if line.strip()]) <= 6


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("recall[fraud]", "recall"),
        ("macro F1", "f1"),
        ("AUC[fraud]", "auc"),
        ("MAE", "mean_absolute_error"),
        ("R²", "r_squared"),
        ("Hamming loss", "hamming_loss"),
    ],
)
def test_a_measure_is_found_by_the_name_that_status_tells(told: str, name: str) -> None:
    assert explain(told).output.startswith(f"{name} (measure)")


def test_without_a_name_all_that_there_is_is_listed() -> None:
    shown = explain()
    assert shown.exit_code == 0
    words = re.split(r"[\s,]+", shown.output)
    assert {*plugins.GROUPS, *(name for _, name in EVERY)} <= set(words)
    assert max(map(len, shown.output.splitlines())) <= 100
    assert json.loads(explain("--json").output) == {kind: list(plugins.names(kind)) for kind in plugins.GROUPS}
    rules = explain("--kind", "rule").output
    assert rules.startswith("rule  accuracy_")
    assert "files" not in rules
    assert explain("--kind", "y").exit_code != 0


def test_a_rule_says_what_it_promises_and_what_it_does_not() -> None:
    text = explain("accuracy_level").output
    assert "about every round" in text
    assert "It promises nothing about the mean over rounds" in text
    assert "`accuracy_mean`" in text
    assert "threshold: number, required" in text
    assert "alpha: number, default none" in text
    assert "about the mean" in explain("accuracy_mean").output


@pytest.mark.parametrize("name", ["accuracy_drop", "accuracy_slices", "accuracy_behind"])
def test_the_other_sequential_rules_say_it_too(name: str) -> None:
    assert "every round" in re.sub(r"\s+", " ", explain(name).output)


def test_a_name_of_several_kinds_is_explained_as_each() -> None:
    text = explain("ssrs").output
    assert "ssrs (sampler)" in text
    assert "ssrs (estimator)" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("acuracy_level",), "Did you mean 'accuracy_level', a rule?"),
        (("accuracy_level", "--kind", "sampler"), "nothing called 'accuracy_level'"),
        (("x", "--kind", "y"), "there is no kind 'y'; the kinds are: sampler"),
    ],
)
def test_what_is_not_there_is_told(arguments: tuple[str, ...], told: str) -> None:
    shown = explain(*arguments)
    assert shown.exit_code != 0
    assert told in f"{shown.output}{shown.exception}"
