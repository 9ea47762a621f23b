"""Which model version answered: however the log writes it, and however few inputs a canary has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from opmon.errors import InputError, NotFoundError, SourceError
from opmon.jobs.versions import rows_of, said_of
from opmon.stages.versions import versions_meant
from opmon.store import draws, rounds
from opmon.types import ModelVersion
from tests.conftest import Workbench, new_digits, point_mlflow_at, register_digits

MODEL = ModelVersion("digits", "4", ("onnx",), None, None)
COLUMNS = {"id": "input_id", "model_version": "served_by"}


class Registry:
    """What a registry of one alias answers."""

    def resolve(self, address: str) -> ModelVersion:
        if address != "models:/digits@champion":
            raise NotFoundError(address)
        return MODEL


def meant(*texts: str) -> dict[str, str]:
    return versions_meant(texts, "served_by", MODEL, Registry())  # type: ignore[arg-type]


def test_every_way_to_write_a_version() -> None:
    ways = ("3", "v3", "V3", "models:/digits/3", "digits/3", "03")
    assert meant(*ways) == {"": "4"} | dict.fromkeys(ways, "3")
    ways = ("@champion", "models:/digits@champion", "digits@champion")
    assert meant(*ways) == {"": "4"} | dict.fromkeys(ways, "4")
    unknown = ("sha256:e3", "champion", "v3.1", "@nobody", "vv3", "/3")
    assert meant(*unknown) == {"": "4"} | {text: text for text in unknown}


def test_rows_by_version_in_columns_of_every_kind() -> None:
    for column in (
        pa.array(["v3", "models:/digits/3", None, " ", "@champion"]),
        pa.array(["v3", "models:/digits/3", None, " ", "@champion"]).dictionary_encode(),
        pa.array([3.0, 3.0, None, float("nan"), 4.0], from_pandas=False),
        pa.array([3, 3, None, None, 4]),
    ):
        by_text = meant(*said_of(column, "served_by"))
        assert rows_of(column, "served_by", "3", by_text).tolist() == [True, True, False, False, False]
        assert rows_of(column, "served_by", "4", by_text).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["models:/other/3"], "monitor watches 'digits'"),
        ([str(k) for k in range(150)], "more than 100 model versions"),
        (["x" * 300], "no model version"),
        ([[1]], "no model version"),
    ],
)
def test_a_column_that_cannot_be_the_version_is_told(column: list[Any], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        meant(*said_of(pa.array(column), "served_by"))


@pytest.fixture(scope="module")
def registry_of_two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A registry with two versions of ``digits``."""
    uri = new_digits(tmp_path_factory.mktemp("versions"))
    assert register_digits(uri) == "2"
    return uri


@pytest.fixture
def workbench(registry_of_two: str, tmp_path: Path, request: pytest.FixtureRequest) -> Workbench:
    point_mlflow_at(registry_of_two)
    name = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name).strip("-")
    return Workbench(tmp_path, registry_of_two, name, "models:/digits/1")


LIMITS = {"min_inputs": 200, "max_inputs": 400, "max_age": "3650d"}


@pytest.fixture
def canary(workbench: Any, database: str, clock: Any) -> Any:
    """A monitor, and windows of which a second version answers a share."""
    monitor = workbench.monitor(database, clock, columns=COLUMNS, round=LIMITS)

    def window(more: int) -> None:
        rows = 200 + more
        workbench.write_window(size=rows, served_by=["v1"] * 200 + ["models:/digits/2"] * (rows - 200))

    return monitor, window


def of(monitor: Any, number: int) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


def test_a_canary_gathers_its_inputs_until_they_are_enough(canary: Any) -> None:
    monitor, window = canary
    window(70)
    assert monitor.advance().opened == 2
    assert (of(monitor, 1).state, of(monitor, 2).state, of(monitor, 2).problem) == ("labelling", "opened", None)
    window(70)
    assert monitor.advance().opened == 1
    window(70)
    assert monitor.advance().opened == 1
    assert [of(monitor, number).received for number in (1, 2, 3, 4)] == [200, 210, 200, 200]
    assert (of(monitor, 2).state, of(monitor, 2).inputs) == ("labelling", 210)
    window(70)
    assert monitor.advance().opened == 2, "the next inputs of the canary begin another round"


def test_versions_share_the_budget_as_they_share_the_inputs(canary: Any) -> None:
    """Also one that has enough of them: of a large log that came at once even a small share is more than min_inputs."""
    monitor, window = canary
    window(200)
    assert monitor.advance().opened == 2
    assert [of(monitor, number).plan.budget for number in (1, 2)] == [20, 20]
    for _ in range(4):
        window(50)
        monitor.advance()
    assert [of(monitor, number).received for number in (3, 4, 5, 6, 7)] == [200, 200, 200, 200, 200]
    assert [of(monitor, number).plan.budget for number in (3, 4, 5, 6, 7)] == [32, 32, 32, 32, 32]


def test_a_canary_that_has_waited_long_enough_asks_for_its_share_of_the_labels(canary: Any, clock: Any) -> None:
    monitor, window = canary
    for _ in range(3):
        window(27)
        monitor.advance()
    assert of(monitor, 2).state == "opened"
    clock.pass_(days=3651)
    assert monitor.advance().opened == 0
    round_ = of(monitor, 2)
    assert (round_.state, round_.inputs, round_.plan.budget) == ("labelling", 81, 15)
    assert len(draws.unpack_draw(round_.draw or b"")) == 15


def test_a_canary_gathers_under_one_condition(workbench: Any, sqlite: str, clock: Any) -> None:
    """Of what is gathered the condition holds that held when its round opened: what came under another is not its."""
    before = workbench.monitor(sqlite, clock, columns=COLUMNS, round=LIMITS)
    workbench.write_window(size=270, served_by=["v1"] * 200 + ["2"] * 70, kind=["user"] * 240 + ["shadow"] * 30)
    before.advance()
    assert of(before, 2).state == "opened"
    inputs = {"tensor": "pixels", "where": "kind == 'user'"}
    monitor = workbench.monitor(sqlite, clock, columns=COLUMNS, round=LIMITS, inputs=inputs)
    workbench.write_window(size=270, served_by=["v1"] * 200 + ["2"] * 70, kind=["user"] * 240 + ["shadow"] * 30)
    assert monitor.advance().opened == 2
    workbench.write_window(size=270, served_by=["v1"] * 200 + ["2"] * 70, kind=["user"] * 230 + ["shadow"] * 40)
    assert monitor.advance().opened == 1
    clock.pass_(days=3651)
    monitor.advance()
    found = [of(monitor, number) for number in (2, 4)]
    assert [(each.received, each.inputs) for each in found] == [(70, 70), (70, 70)]


def test_a_canary_asks_for_all_of_the_budget_where_that_is_said(workbench: Any, sqlite: str, clock: Any) -> None:
    monitor = workbench.monitor(sqlite, clock, columns=COLUMNS, round=LIMITS | {"canary": "whole"})
    workbench.write_window(size=227, served_by=["v1"] * 200 + ["models:/digits/2"] * 27)
    monitor.advance()
    clock.pass_(days=3651)
    monitor.advance()
    assert [(of(monitor, number).inputs, of(monitor, number).plan.budget) for number in (1, 2)] == [(200, 40), (27, 40)]


def test_an_alias_that_moved_does_not_mix_two_versions_in_one_round(workbench: Any, tmp_path: Path) -> None:
    import mlflow

    client = mlflow.MlflowClient(workbench.tracking_uri, registry_uri=workbench.tracking_uri)
    limits = {"min_inputs": 150, "max_inputs": 400, "max_age": "3650d"}
    monitor = workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", columns=COLUMNS, round=limits)
    client.set_registered_model_alias("digits", "blue", "1")
    workbench.write_window(size=200, served_by=["@blue"] * 100 + ["2"] * 100)
    monitor.advance()
    client.set_registered_model_alias("digits", "blue", "2")
    workbench.write_window(size=200, served_by=["@blue"] * 100 + ["1"] * 100)
    assert monitor.advance().opened == 2
    assert [of(monitor, number).received for number in (1, 2, 3, 4)] == [100, 100, 100, 100]
    assert {of(monitor, number).model_version for number in (1, 4)} == {"1", "2"}
    workbench.write_window(size=200, served_by=["@blue"] * 100 + ["1"] * 100)
    assert monitor.advance().opened == 0
    found = {number: (of(monitor, number).received, of(monitor, number).inputs) for number in (3, 4)}
    assert found == {3: (200, 200), 4: (200, 200)}


def test_versions_whose_answers_are_logged_are_compared_as_asked(workbench: Any, sqlite: str) -> None:
    """Each by its own rounds: so many of the newest as are asked for, as surely as is asked for, of one level."""
    workbench.register_again()
    changes: dict[str, Any] = {
        "classes": [str(digit) for digit in range(10)],
        "scoring": {"by": "logged"},
        "columns": {"id": "input_id", "timestamp": "at", "prediction": "said", "model_version": "served_by"},
        "sampler": {"type": "srs", "budget": 40},
        "rules": [],
    }

    def live(monitor: Any, version: str, wrong: float) -> None:
        workbench.write_window(said=["0"] * 200, served_by=[version] * 200)
        workbench.truth |= dict.fromkeys(list(workbench.truth)[-200:], "0")
        assert monitor.advance().problems == []
        workbench.answer(monitor, wrong=wrong)
        assert monitor.advance().closed == 1

    other = workbench.monitor(sqlite, **changes, level=0.8)
    live(other, "1", wrong=0.9)
    monitor = workbench.monitor(sqlite, **changes)
    for version, wrong in (("1", 0.05), ("2", 0.25), ("1", 0.05), ("2", 0.25)):
        live(monitor, version, wrong)

    def compared(**asked: Any) -> Any:
        (found,) = monitor.compare_measures("models:/digits/1", "models:/digits/2", **asked)
        return found

    both = compared()
    assert (both.rounds, both.labels, both.winner) == (4, 160, "first"), "none of another level"
    assert both.alpha == pytest.approx(0.05)
    newest = compared(newest=1)
    assert (newest.rounds, newest.labels) == (2, 80)
    sure = compared(alpha=1e-6)
    assert (sure.winner, sure.alpha) == (None, 1e-6)
    assert sure.low < both.low < both.high < sure.high
    assert "Not decided" in sure.words("one", "two")
    assert "99.9999 % interval" in sure.words("one", "two").replace("\xa0", " ")
    wide = compared(alpha=0.2)
    assert (wide.low, wide.high) == (both.low, both.high), "they are known no more narrowly"
    for wrong, told in ({"fresh": True}, "leave out --fresh"), ({"alpha": 0.0}, "alpha is a probability"):
        with pytest.raises(InputError, match=told):
            compared(**wrong)


def test_a_version_that_is_deleted_and_registered_anew_answers_in_the_same_process(
    workbench: Any, database: str, tmp_path: Path
) -> None:
    import mlflow

    world = workbench.sibling(tmp_path / "alone")
    monitor = world.monitor(database)
    found = []
    for _ in range(2):
        world.write_window()
        monitor.advance()
        with monitor._at_work() as work:
            found.append(work.way(of(monitor, len(found) + 1)))
        world.answer(monitor)
        monitor.advance()
        mlflow.MlflowClient(world.tracking_uri).delete_registered_model("digits")
        world.new_version()
    assert [way.name for way in found] == ["models:/digits/1"] * 2
    assert found[0].path != found[1].path
