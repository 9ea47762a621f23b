"""Opmon's own plugins under the suites for plugins, and plugins that break a promise, which the suites must find."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon import plugins
from opmon.abc import Action, Executor, Head, Perturbation, Rule, Sampler
from opmon.decisions.case import Case
from opmon.errors import OpmonError, PluginError
from opmon.samplers._checks import checked_budget
from opmon.sources.files import Files
from opmon.testing import (
    check_action,
    check_executor,
    check_head,
    check_perturbation,
    check_rule,
    check_sampler,
    check_source,
)
from opmon.types import Draw, Frame, Verdict

HEADS = ["confidence", "entropy", "gini", "margin", "sae", "vae"]


@pytest.mark.parametrize("name", plugins.names("sampler"))
def test_samplers(name: str) -> None:
    sampler = plugins.make("sampler", name)
    if f"opmon.samplers.{name}" != type(sampler).__module__:
        return  # another distribution's, which tests its own
    check_sampler(sampler, plugins.make("estimator", name), biased=name == "ces")


@pytest.mark.parametrize("name", [name for name in plugins.names("perturbation") if "." in name])
def test_perturbations(name: str) -> None:
    check_perturbation(plugins.make("perturbation", name))


@pytest.mark.parametrize("name", HEADS)
def test_heads(name: str, tmp_path: Path) -> None:
    check_head(plugins.make("head", name), tmp_path)


class Names(Head):
    """Names columns and computes nothing of them."""

    columns = ("risk",)  # type: ignore[assignment]


def test_a_variable_of_the_log_is_a_head_too(tmp_path: Path) -> None:
    for suspicious in ("high", "low"):
        check_head(plugins.make("head", "column", {"column": "risk", "suspicious": suspicious}), tmp_path)

    with pytest.raises(PluginError, match=r"Names names the columns \('risk',\) and has no of_columns"):
        check_head(Names(), tmp_path)


RULES: dict[str, dict[str, Any]] = {
    "accuracy_behind": {"rival": "models:/m/2"},
    "accuracy_below": {"threshold": 0.9},
    "accuracy_drop": {"drop": 0.05, "rounds": 2},
    "accuracy_level": {"threshold": 0.9},
    "accuracy_mean": {"threshold": 0.9, "rounds": 3},
    "accuracy_slices": {"threshold": 0.9},
    "completeness": {},
    "drift_level": {},
    "robustness_level": {"threshold": 0.5},
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    rival = np.zeros(60) if name == "accuracy_behind" else None
    check_rule(plugins.make("rule", name, RULES[name]), rival=rival, drift=0.8, robustness=0.4)


@dataclass(frozen=True)
class Forgetful(Rule):
    """Counts its rounds in itself, and says something else each time it is asked."""

    name: str = "forgetful"
    seen: tuple[int, ...] = ()

    def judge(self, case: Case) -> Verdict:
        object.__setattr__(self, "seen", (*self.seen, case.number))
        return Verdict(self.name, "ok", f"{len(self.seen)} rounds")


@dataclass(frozen=True)
class Elsewhere(Rule):
    """Says something else once a late label has come."""

    name: str = "elsewhere"

    def judge(self, case: Case) -> Verdict:
        return Verdict(self.name, "ok", "fine")

    def restate(self, before: Any, details: Any) -> Verdict:
        return Verdict(self.name, "alarm", "not fine")


@pytest.mark.parametrize(("rule", "told"), [(Forgetful(), "the same twice"), (Elsewhere(), "something else than")])
def test_a_rule_that_breaks_its_promise_is_found(rule: Rule, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_rule(rule)


@pytest.mark.parametrize("name", plugins.names("executor"))
def test_executors(name: str, tmp_path: Path) -> None:
    check_executor(plugins.make("executor", name), tmp_path)


@dataclass(frozen=True)
class Unordered(Executor):
    """Gives results as they come."""

    def run(self, function: Any, jobs: Any) -> Any:
        return (function(job) for job in reversed(jobs))


@dataclass(frozen=True)
class Silent(Executor):
    """Keeps the errors of jobs to itself."""

    def run(self, function: Any, jobs: Any) -> Any:
        for job in jobs:
            with suppress(OpmonError):
                yield function(job)


@pytest.mark.parametrize(("executor", "told"), [(Unordered(), "in order"), (Silent(), "the error of a job")])
def test_an_executor_that_breaks_its_promise_is_found(executor: Executor, told: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=told):
        check_executor(executor, tmp_path)


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_files(form: str, tmp_path: Path) -> None:
    tables = [pa.table({"id": [f"{k}-{i}" for i in range(15)], "x": np.arange(15.0)}) for k in range(3)]
    for number, table in enumerate(tables):
        path = tmp_path / f"{number}.{form}"
        if form == "parquet":
            pq.write_table(table, path)
        elif form == "csv":
            table.to_pandas().to_csv(path, index=False)
        else:
            table.to_pandas().to_json(path, orient="records", lines=True)
    check_source(Files(str(tmp_path)), pa.concat_tables(tables))


class First(Sampler):
    """The first inputs of the frame, whatever the seed."""

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return Draw("first", frame.size, np.arange(min(checked_budget(budget), frame.size)))


class Endless(First):
    def next_batch(self, frame: Frame, budget: int, sample: Any, rng: np.random.Generator) -> Draw:
        return Draw("first", frame.size, np.append(sample.draw.positions, 0))


class Darker(Perturbation):
    kind = "image"

    def apply(self, inputs: Any, severity: int, rng: np.random.Generator) -> Any:
        inputs *= 0.5
        return inputs


class Shouting(Action):
    def act(self, event: Any) -> Any:
        event["id"] = event["id"].upper()


class Same(Head):
    def nodes(self, graph: Any) -> str:
        first, _ = graph.largest
        return str(graph.nodes.add("Sub", [first, first]))


@dataclass(frozen=True)
class Forgetful(Files):
    def pending(self, positions: Any, limit: int | None = None) -> Any:
        return super().pending({}, limit)


@dataclass(frozen=True)
class Repeating(Files):
    def lost(self, slices: Any) -> Any:
        return {"the buffer was full": 3}


@dataclass(frozen=True)
class Unlikely(Files):
    @property
    def inclusion(self) -> str:
        return "chance"


def test_what_breaks_a_promise_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="another seed gives the same draw"):
        check_sampler(First())
    with pytest.raises(AssertionError, match=r"does not come to an end|draws of a budget"):
        check_sampler(Endless())
    with pytest.raises(AssertionError, match=r"changed its inputs|same seed"):
        check_perturbation(Darker())
    with pytest.raises(AssertionError, match="changed the event"):
        check_action(Shouting())
    with pytest.raises(AssertionError, match="all inputs have the same value"):
        check_head(Same(), tmp_path)
    pq.write_table(pa.table({"id": [str(i) for i in range(30)]}), tmp_path / "log.parquet")
    with pytest.raises(AssertionError, match="what was read is pending again"):
        check_source(Forgetful(str(tmp_path / "log.parquet")), pa.table({"id": [str(i) for i in range(30)]}))
    with pytest.raises(AssertionError, match="losses of no slices"):
        check_source(Repeating(str(tmp_path / "log.parquet")), pa.table({"id": [str(i) for i in range(30)]}))
    pq.write_table(pa.table({"id": [str(i) for i in range(30)], "chance": [2.0] * 30}), tmp_path / "chance.parquet")
    with pytest.raises(AssertionError, match="'chance' holds no probabilities"):
        check_source(Unlikely(str(tmp_path / "chance.parquet")), pa.table({"id": [str(i) for i in range(30)]}))
