"""Which rows are inputs, and what becomes of the others: counted, told, and bounded at worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from opmon.errors import ConfigError
from opmon.queries.rounds import round_views
from opmon.sources.files import Files
from opmon.stages import losses
from opmon.store import rounds
from opmon.types import Slice
from tests.conftest import Workbench


def countries(size: int, share: float = 0.5) -> list[str | None]:
    """A column in which ``share`` of the rows say DE, and the others AT or nothing."""
    return [("DE" if k < share * size else "AT" if k % 2 else None) for k in range(size)]


def advanced(workbench: Workbench, database: str, **changes: Any) -> Any:
    monitor = workbench.monitor(database, **changes)
    cycle = monitor.advance()
    assert not cycle.problems
    return monitor


def round_of(monitor: Any, number: int) -> rounds.Round:
    with monitor.store.read() as connection:
        return rounds.get(connection, monitor.settings.name, number)


DE = {"tensor": "pixels", "where": "country == 'DE'"}


def test_rows_that_do_not_fit_are_no_inputs(workbench: Workbench, database: str) -> None:
    for _ in range(2):
        workbench.write_window(200, country=countries(200, 0.6))
    limits = {"min_inputs": 200, "max_inputs": 1000, "max_age": "3650d"}
    monitor = advanced(workbench, database, inputs=DE, round=limits)
    one = round_of(monitor, 1)
    assert (one.received, one.inputs, one.unscorable) == (240, 240, 0)
    assert one.losses == {"filtered": {"inputs.where": 160}}
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        view = round_views(connection, [(monitor.settings.watch, [round_of(monitor, 1)])], monitor.clock())[0][0]
    assert view.losses == {"filtered": {"inputs.where": 160}}
    assert view.estimate is not None
    assert view.estimate.frame_size == 240
    assert not any("cannot be scored" in note for note in view.estimate.notes), "what is no input is not missing"


def test_a_round_waits_until_enough_rows_fit(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    limits = {"min_inputs": 200, "max_inputs": 1000, "max_age": "3650d"}
    workbench.write_window(300, country=countries(300))
    monitor = advanced(workbench, database, inputs=DE, round=limits)
    with monitor.store.read() as connection:
        assert rounds.count(connection, workbench.name) == 0
    workbench.write_window(300, country=countries(300))
    monitor.advance()
    assert round_of(monitor, 1).received == 300


def test_a_log_in_which_nothing_fits_does_not_stop_what_comes_after(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    limits = {"min_inputs": 100, "max_inputs": 200, "max_age": "3650d"}
    workbench.write_window(450, country=["FR"] * 450)
    workbench.write_window(120, country=["DE"] * 120)
    monitor = advanced(workbench, database, inputs=DE, round=limits)
    assert (round_of(monitor, 1).received, round_of(monitor, 1).inputs) == (120, 120)
    with monitor.store.read() as connection:
        assert rounds.count(connection, workbench.name) == 1


def test_the_condition_of_a_round_stays_while_it_lives(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    workbench.write_window(400, country=countries(400))
    limits = {"min_inputs": 200, "max_inputs": 400, "max_age": "3650d"}
    broken = {"tensor": "pixels_of_nothing", "where": "country == 'DE'"}
    monitor = workbench.monitor(database, inputs=broken, round=limits)
    assert monitor.advance().problems  # the round is open, and cannot be scored
    mended = {"tensor": "pixels", "where": "country == 'AT'"}
    monitor = advanced(workbench, database, inputs=mended, round=limits)
    assert (round_of(monitor, 1).received, round_of(monitor, 1).inputs) == (200, 200)
    assert round_of(monitor, 1).plan.where == "country == 'DE'"


def test_filtered_rows_of_several_versions(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    workbench.write_window(400, country=countries(400), served_by=["1"] * 400)
    limits = {"min_inputs": 200, "max_inputs": 400, "max_age": "3650d"}
    columns = {"id": "input_id", "timestamp": "at", "model_version": "served_by"}
    monitor = advanced(workbench, database, inputs=DE, round=limits, columns=columns)
    one = round_of(monitor, 1)
    assert (one.received, one.inputs, one.losses) == (200, 200, {"filtered": {"inputs.where": 200}})


def test_files_in_folders_that_do_not_fit_are_not_read(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    for country in ("DE", "AT", "FR"):
        path = workbench.write_window(200)
        (workbench.folder / "production" / f"country={country}").mkdir()
        path.rename(workbench.folder / "production" / f"country={country}" / path.name)
    read: list[str] = []
    made = Files.read_some

    def noted(self: Files, slices: Sequence[Slice], numbers: Sequence[int]) -> Any:
        read.extend(slices[number].part for number in numbers)
        return made(self, slices, numbers)

    monkeypatch.setattr(Files, "read_some", noted)
    limits = {"min_inputs": 200, "max_inputs": 600, "max_age": "3650d"}
    where = {"tensor": "pixels", "where": "country == 'AT' and at >= '2026-01-01'"}
    monitor = advanced(workbench, f"sqlite:///{workbench.folder / 'opmon.db'}", inputs=where, round=limits)
    one = round_of(monitor, 1)
    assert (one.received, one.inputs, one.losses) == (200, 200, {"filtered": {"inputs.where": 400}})
    assert set(read) == {"country=AT/window-002.parquet"}


def test_inputs_that_come_late_are_counted(workbench: Workbench) -> None:
    database = f"sqlite:///{workbench.folder / 'opmon.db'}"
    limits = {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d"}
    workbench.write_window(200)
    monitor = advanced(workbench, database, round=limits)
    workbench.windows -= 1  # the next file has the hour of the first
    late = workbench.write_window(150, seed=1).rename(workbench.folder / "production" / "late.parquet")
    assert late.exists()
    workbench.windows += 1
    workbench.write_window(50)
    monitor.advance()
    two = round_of(monitor, 2)
    assert two.received == 200
    assert sum((two.losses or {})["late"].values()) in (149, 150)  # the last may be of the very moment


class Lossy(Files):
    """A log whose recorder had to drop inputs."""

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        return {"the buffer was full": 50}


def test_what_was_never_logged_bounds_the_estimate(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    from opmon import plugins

    made = plugins.load
    monkeypatch.setattr(plugins, "load", lambda kind, name: Lossy if kind == "source" else made(kind, name))
    workbench.write_window(200)
    monitor = advanced(workbench, f"sqlite:///{workbench.folder / 'opmon.db'}")
    assert round_of(monitor, 1).losses == {"unlogged": {"the buffer was full": 50}}
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        view = round_views(connection, [(monitor.settings.watch, [round_of(monitor, 1)])], monitor.clock())[0][0]
    estimate = view.estimate
    assert estimate is not None
    note = next(note for note in estimate.notes if "never logged" in note)
    assert note.startswith(
        "50 more were never logged or read: this is of the others; over all of them it lies between "
    )
    low, high = 0.8 * estimate.low, 0.8 * estimate.high + 0.2  # 200 of 250 are known
    assert f"{100 * low:.1f} %" in note
    assert f"{100 * high:.1f} %" in note


def test_in_a_thinned_log_one_input_stands_for_several(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    from opmon import plugins

    made = plugins.load
    monkeypatch.setattr(plugins, "load", lambda kind, name: Lossy if kind == "source" else made(kind, name))
    workbench.write_window(400, kept_with=[0.5] * 400)
    limits = {"min_inputs": 100, "max_inputs": 400, "max_age": "3650d"}
    columns = {"id": "input_id", "timestamp": "at", "inclusion": "kept_with"}
    monitor = advanced(workbench, f"sqlite:///{workbench.folder / 'opmon.db'}", round=limits, columns=columns)
    workbench.answer(monitor)
    monitor.advance()
    with monitor.store.read() as connection:
        view = round_views(connection, [(monitor.settings.watch, [round_of(monitor, 1)])], monitor.clock())[0][0]
    assert view.estimate is not None
    note = next(note for note in view.estimate.notes if "never logged" in note)
    assert f"{100 * view.estimate.low * 400 / 425:.1f} %" in note, "50 that were lost are as many as 25 logged ones"


def test_losses_of_two_looks_are_added() -> None:
    first = {"filtered": {"inputs.where": 3}}
    second = {"filtered": {"inputs.where": 4}, "unlogged": {"disk full": 2}, "late": {"x": 0}}
    assert losses.added(first, second) == {"filtered": {"inputs.where": 7}, "unlogged": {"disk full": 2}}
    assert losses.added(None, {}) == {}
    assert losses.total(first, "filtered") == 3
    assert losses.total(None, "filtered") == 0


def test_a_condition_that_is_none_is_refused_when_read(workbench: Workbench) -> None:
    with pytest.raises(ConfigError, match=r"where.*country = ") as caught:
        workbench.monitor("sqlite:///opmon.db", inputs={"tensor": "pixels", "where": "country = "})
    assert "a column or a value is missing" in str(caught.value)


def test_while_annotators_have_enough_to_do_inputs_gather_for_one_round(workbench: Workbench, database: str) -> None:
    from opmon.queries.monitors import monitor_view

    limits = {"min_inputs": 200, "max_inputs": 5000, "max_age": "3650d"}
    sampler = {"type": "srs", "budget": 40}
    monitor = workbench.monitor(database, round=limits, sampler=sampler, labels={"max_open": 70})
    for _ in range(6):
        workbench.write_window(200)
        assert not monitor.advance().problems
    with monitor.store.read() as connection:
        assert rounds.count(connection, workbench.name) == 2, "40 tasks are fewer than 70, 80 are not"
        full, wait = monitor_view(connection, monitor.settings.watch, monitor.clock(), shown=1).needs[-2:]
    rule = "until there are fewer than 70 (labels.max_open) new inputs gather for one larger round"
    assert (full.kind, full.message) == ("full", f"80 tasks wait; {rule}")
    assert (wait.kind, wait.message) == ("labels", "80 tasks of rounds 1 and 2 wait for annotators")
    workbench.answer(monitor, only=1)
    monitor.advance()
    assert round_of(monitor, 3).received == 800
