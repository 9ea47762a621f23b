"""``opmon labels``, ``opmon rounds urgent`` and ``opmon prune`` as users run them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from opmon.cli import WRONG
from tests.cli.test_commands import opmon


@pytest.fixture
def drawn(workbench: Any, sqlite: str) -> tuple[Any, str]:
    """A workbench with two rounds in labelling, and its configuration."""
    pixels = [float(each) for each in workbench.images[0]]
    lines = [{"input_id": "g-1", "label": str(workbench.targets[0]), "payload": {"pixels": pixels}}]
    (workbench.folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    labels = {"labels": {"gold": {"file": "gold.jsonl", "share": 0.02}}, "keep": {"payloads": "90d"}}
    config = str(workbench.write_yaml(sqlite, **labels))
    for _ in range(2):
        workbench.write_window()
    assert opmon("run", "-c", config)[0] == 0
    return workbench, config


def exported(config: str, path: Path, *more: str) -> list[dict[str, str]]:
    assert opmon("labels", "export", "-c", config, "-o", str(path), *more)[0] == 0
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_annotators_get_files_of_their_own(drawn: Any, tmp_path: Path) -> None:
    _, config = drawn
    ann = exported(config, tmp_path / "ann.csv", "--annotator", "ann", "-n", "10")
    ben = exported(config, tmp_path / "ben.csv", "--annotator", "ben", "--for", "3d")
    assert len(ann) == 10
    assert not {row["task_key"] for row in ann} & {row["task_key"] for row in ben}
    assert len(ann) + len(ben) == len(exported(config, tmp_path / "all.csv"))
    code, _, err = opmon("labels", "export", "-c", config, "--annotator", "ann", "--for", "soon")
    assert code == WRONG
    assert "--for" in err


def test_an_urgent_round_comes_first(drawn: Any, tmp_path: Path) -> None:
    _, config = drawn
    assert exported(config, tmp_path / "tasks.csv")[0]["round"] == "1"
    assert "urgent: its tasks come first" in opmon("rounds", "urgent", "-c", config, "2")[1]
    assert exported(config, tmp_path / "tasks.csv")[0]["round"] == "2"
    assert exported(config, tmp_path / "ann.csv", "--annotator", "ann", "-n", "1")[0]["round"] == "2"
    assert opmon("rounds", "urgent", "-c", config, "2", "--no")[0] == 0
    assert exported(config, tmp_path / "tasks.csv")[0]["round"] == "1"
    assert opmon("rounds", "urgent", "-c", config, "7")[0] == WRONG


def test_a_partial_import_takes_what_it_can_and_writes_down_the_rest(drawn: Any, tmp_path: Path) -> None:
    _, config = drawn
    one, two, three, *_ = exported(config, tmp_path / "tasks.csv")
    answered = tmp_path / "answered.csv"
    rows = [
        {"task_key": one["task_key"], "label": "3"},
        {"task_key": two["task_key"], "label": "=cow"},
        {"task_key": f"t1-{'0' * 12}", "label": "3"},
        {"task_key": "", "label": "3"},
        {"task_key": three["task_key"], "label": ""},
    ]
    with answered.open("w", newline="") as stream:
        table = csv.DictWriter(stream, ["task_key", "label"])
        table.writeheader()
        table.writerows(rows)
    code, _, err = opmon("labels", "import", "-c", config, str(answered))
    assert code == WRONG
    assert not (tmp_path / "answered.csv.refused.csv").exists()
    code, out, err = opmon("labels", "import", "-c", config, str(answered), "--partial", "--json")
    told = json.loads(out)
    assert (code, told["new"], told["unanswered"]) == (0, 1, 1)
    assert [each["line"] for each in told["refused"]] == [3, 4, 5]
    assert "answered.csv.refused.csv" in err
    with (tmp_path / "answered.csv.refused.csv").open(encoding="utf-8-sig", newline="") as stream:
        refused = list(csv.DictReader(stream))
    assert [row["line"] for row in refused] == ["3", "4", "5"]
    assert refused[0]["label"] == "'=cow"
    assert "asks for one of the classes" in refused[0]["why"]
    again = json.loads(opmon("labels", "import", "-c", config, str(answered), "--partial", "--json")[1])
    assert (again["new"], again["unchanged"]) == (0, 1)


def test_the_same_file_says_nothing_new_though_its_annotator_has(drawn: Any, tmp_path: Path) -> None:
    """A script that imports one file every hour must not undo a correction."""
    _, config = drawn
    one = exported(config, tmp_path / "tasks.csv")[0]
    for name, label in (("first.csv", "3"), ("correction.csv", "5")):
        (tmp_path / name).write_text(f"task_key,label\n{one['task_key']},{label}\n")
    said = [json.loads(opmon("labels", "import", "-c", config, str(tmp_path / name), "--json")[1])["new"]
            for name in ("first.csv", "correction.csv", "first.csv", "first.csv")]  # fmt: skip
    assert said == [1, 1, 0, 0]


def test_gold_is_listed_and_added_to(drawn: Any, tmp_path: Path) -> None:
    workbench, config = drawn
    more = tmp_path / "more.csv"
    more.write_text("input_id,label,input.pixels\ng-1,0,[1]\ng-2,1,[2]\n")
    code, out, err = opmon("labels", "gold", "add", "-c", config, str(more))
    assert (code, out) == (0, f"1 input added to {workbench.folder / 'gold.jsonl'}, 1 there already\n"), err
    listed = [json.loads(line) for line in opmon("labels", "gold", "list", "-c", config, "--json")[1].splitlines()]
    assert [each["input_id"] for each in listed] == ["g-1", "g-2"]
    assert "right" in opmon("labels", "gold", "list", "-c", config)[1]
    more.write_text("input_id,label,input.pixels\ng-2,7,[2]\n")
    code, _, err = opmon("labels", "gold", "add", "-c", config, str(more))
    assert code == WRONG
    assert "nothing was added" in err
    more.write_text("input_id,label,input.pixels\ng-3,cow,[2]\n")
    assert "'cow', which nobody can answer" in opmon("labels", "gold", "add", "-c", config, str(more))[2]


def test_prune_says_what_would_go(drawn: Any) -> None:
    workbench, config = drawn
    out = opmon("prune", "-c", config)[1]
    assert f"{workbench.name}: 0 bytes of 0 rounds would be removed" in out
    assert "there is nothing to remove" in out
    assert "opmon prune --yes" not in out
    told = json.loads(opmon("prune", "-c", config, "--yes", "--json")[1])
    assert told == {"monitor": workbench.name, "erased": True, "rounds": []}


def test_check_tells_what_annotators_lack(workbench: Any, sqlite: str) -> None:
    labels = {"gold": {"file": "none.jsonl"}, "guidelines": "none.md"}
    workbench.write_window()
    out = opmon("check", "-c", str(workbench.write_yaml(sqlite, labels=labels)))[1]
    assert "there is no gold file" in out
    assert "none.md cannot be read" in out


def test_what_annotators_said_is_brought_back_into_a_database_that_lost_it(workbench: Any, tmp_path: Path) -> None:
    """As keeping.md says it: from the file in the round's run, for those inputs that are drawn once more."""
    import mlflow

    config = str(workbench.write_yaml(f"sqlite:///{tmp_path / 'lost.db'}"))
    workbench.write_window()
    assert opmon("run", "-c", config)[0] == 0
    tasks = exported(config, tmp_path / "tasks.csv")
    answers = tmp_path / "answers.jsonl"
    said = [{"task_key": row["task_key"], "label": workbench.truth[row["input_id"]]} for row in tasks[1:]]
    said = [row | {"annotator": "ann", "at": "2026-03-02T08:00:00Z"} for row in said]
    said += [{"task_key": tasks[0]["task_key"], "skip": True, "annotator": "ben", "at": "2026-03-02T09:00:00Z"}]
    answers.write_text("".join(json.dumps(row) + "\n" for row in said))
    assert opmon("labels", "import", "-c", config, str(answers))[0] == 0
    assert opmon("run", "-c", config)[0] == 0
    run = json.loads(opmon("rounds", "show", "-c", config, "1", "--json")[1])["run_id"]
    client = mlflow.MlflowClient(workbench.tracking_uri)
    saved = client.download_artifacts(run, "labels.jsonl", str(tmp_path))

    config = str(workbench.write_yaml(f"sqlite:///{tmp_path / 'new.db'}"))
    assert opmon("run", "-c", config)[0] == 0
    again = {row["input_id"] for row in exported(config, tmp_path / "again.csv")}
    back = again & {row["input_id"] for row in tasks}
    assert back
    code, out, err = opmon("labels", "import", "--only-asked", "-c", config, saved, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"new": len(back), "unchanged": 0, "unanswered": 0, "not_asked": len(tasks) - len(back)}
    assert {row["input_id"] for row in exported(config, tmp_path / "left.csv")} == again - back
