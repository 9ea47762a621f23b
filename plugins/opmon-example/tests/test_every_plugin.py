"""Every plugin under opmon's own suites, and all of them together in one monitor."""

from __future__ import annotations

import csv
import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from opmon_example.append import Append
from opmon_example.feather import Feather
from opmon_example.folder import Folder
from opmon_example.kappa import Kappa
from opmon_example.outside import Outside
from opmon_example.processes import Processes
from opmon_example.runner_up import RunnerUp
from opmon_example.sheet import COLUMNS, Sheet
from opmon_example.spent import LabelsSpent
from opmon_example.systematic import Systematic, SystematicEstimator
from opmon_example.vignette import Vignette
from opmon_example.words import Words
from sklearn.metrics import cohen_kappa_score

from opmon import plugins
from opmon.abc import Question
from opmon.decisions.case import Case
from opmon.errors import InputError, NotFoundError, SourceError, UnavailableError
from opmon.testing import (
    check_action,
    check_executor,
    check_head,
    check_judge,
    check_label_provider,
    check_measure,
    check_perturbation,
    check_registry,
    check_rule,
    check_sampler,
    check_source,
)
from opmon.testing.heads import network
from opmon.types import Guide, Labelled, Task


def write(folder: Path, name: str, table: pa.Table) -> None:
    with pa.ipc.new_file(folder / f".{name}", table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    (folder / f".{name}").rename(folder / f"{name}.arrow")


def test_sampler_and_estimator() -> None:
    check_sampler(Systematic(), SystematicEstimator())


def test_source(tmp_path: Path) -> None:
    tables = [pa.table({"id": [f"{k}-{i}" for i in range(20)], "x": np.arange(20.0)}) for k in range(3)]
    for number, table in enumerate(tables):
        write(tmp_path, f"part-{number}", table)
    check_source(Feather(str(tmp_path)), pa.concat_tables(tables))


def test_source_names_a_file_that_is_not_whole(tmp_path: Path) -> None:
    (tmp_path / "half.arrow").write_bytes(b"ARROW1")
    with pytest.raises(SourceError, match=r"half\.arrow is no whole Arrow file"):
        Feather(str(tmp_path)).pending({})


def test_head(tmp_path: Path) -> None:
    check_head(RunnerUp(), tmp_path)


def test_head_that_learns(tmp_path: Path) -> None:
    check_head(Outside(share=0.5), tmp_path)


def test_action(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    check_action(Append(str(log)))
    assert len(log.read_text().splitlines()) == 1


def test_rule() -> None:
    check_rule(LabelsSpent(most=100))


def test_rule_counts_over_rounds() -> None:
    rule = LabelsSpent(most=100)
    first = rule.judge(Case(1, (), answered=60))
    second = rule.judge(Case(2, (), answered=60, before=first.details))
    assert (first.details["advice"], second.details["advice"], second.value) == (False, True, 120)


def test_measure() -> None:
    check_measure(Kappa())


def test_kappa_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog", "owl"], 90)
    said = np.where(rng.random(90) < 0.7, truth, "cat")
    rows = Labelled(np.ones(90, dtype=bool), truth, said)
    assert Kappa().value(rows, np.ones(90)) == pytest.approx(cohen_kappa_score(truth, said))


def test_kappa_of_one_class_is_explained() -> None:
    rows = Labelled(np.ones(9, dtype=bool), np.full(9, "cat"), np.full(9, "cat"))
    with pytest.raises(InputError, match="all 9 answers and predictions are of one class"):
        Kappa().value(rows, np.ones(9))


class Spreadsheet:
    """Somebody who opens the sheet, fills in a row and saves it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[dict[str, str]]:
        with self.path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    def save(self, rows: list[dict[str, str]]) -> None:
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, COLUMNS)
            table.writeheader()
            table.writerows(rows)

    def tasks(self) -> list[str]:
        return [row["task"] for row in self.rows()]

    def say(self, key: str, truth: str | None, annotator: str, at: datetime) -> None:
        rows = self.rows()
        row = next(row for row in rows if row["task"] == key)
        row |= {"label": truth or "", "skip": "" if truth else "x", "who": annotator, "when": at.isoformat()}
        self.save(rows)


def test_label_provider(tmp_path: Path) -> None:
    check_label_provider(Sheet(str(tmp_path)), Spreadsheet(tmp_path / "suite.csv"))


def test_label_provider_is_given_again_what_a_spreadsheet_overwrote(tmp_path: Path) -> None:
    sheet, people = Sheet(str(tmp_path)).bind("suite", Guide()), Spreadsheet(tmp_path / "suite.csv")
    tasks = [Task(k, "suite", 1, f"i{k}", {}, f"t{k}-0123456789ab") for k in (1, 2)]
    sheet.push(tasks[:1])
    opened = people.rows()
    sheet.push(tasks)
    people.save(opened)
    held = sheet.reconcile({task.key for task in tasks})
    sheet.push([task for task in tasks if task.key not in held])
    assert people.tasks() == [task.key for task in tasks]


def test_judge() -> None:
    check_judge(Words({"cat": ["3", "number"], "dog": ["2"]}))


def test_judge_says_how_sure_it_is() -> None:
    judge = Words({"spam": ["prize", "win"], "ham": ["meeting"]})
    texts = ["Win a prize! A PRIZE!", "prize meeting", "nothing"]
    said = list(judge.answer([Question(text, {"text": text}) for text in texts], Guide()))
    assert [each.scores for each in said] == [{"spam": 1.0, "ham": 0.0}, {"spam": 0.5, "ham": 0.5}, {}]


def test_registry(tmp_path: Path) -> None:
    (tmp_path / "models" / "digits" / "1").mkdir(parents=True)
    network(tmp_path / "models" / "digits" / "1" / "model.onnx")
    check_registry(Folder(str(tmp_path / "models")), "models:/digits/1", tmp_path / "elsewhere")


def test_registry_follows_an_alias(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / "digits" / version).mkdir(parents=True)
        network(tmp_path / "digits" / version / "model.onnx")
    registry = Folder(str(tmp_path))
    first, second = (registry.resolve(f"models:/digits/{version}") for version in ("1", "2"))
    registry.set_alias(second, "champion")
    registry.remove_alias(first, "champion")
    assert registry.resolve("models:/digits@champion") == second
    registry.remove_alias(second, "champion")
    with pytest.raises(NotFoundError, match="digits@champion"):
        registry.resolve("models:/digits@champion")


def test_executor(tmp_path: Path) -> None:
    check_executor(Processes(), tmp_path)


def test_a_process_that_dies_is_told_and_nothing_is_lost() -> None:
    with pytest.raises(UnavailableError, match="ended by itself"):
        list(Processes(workers=1).run(os._exit, [1]))


def test_perturbation() -> None:
    check_perturbation(Vignette())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("sampler", "systematic"),
        ("estimator", "systematic"),
        ("source", "feather"),
        ("executor", "processes"),
        ("head", "outside"),
        ("head", "runner_up"),
        ("rule", "labels_spent"),
        ("action", "append"),
        ("perturbation", "image.vignette"),
        ("registry", "folder"),
        ("judge", "words"),
        ("label_provider", "sheet"),
    ],
)
def test_opmon_finds_it(kind: str, name: str) -> None:
    assert name in plugins.names(kind)
    plugins.load(kind, name)
