"""Loading a model with its variables: the file, the graph with its heads, the session, and what the outputs mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.errors import InputError
from opmon.problems import PROBLEMS, Problem, traits
from opmon.scoring._allocation import keep_freed_memory
from opmon.scoring._batching import Sizes, lanes_by_memory
from opmon.scoring._running import Runner
from opmon.scoring.devices import Device
from opmon.scoring.graph.adapting import adapted
from opmon.scoring.graph.compiled import (
    ArrayFunction,
    compile_graph,
    functions_of,
    is_added,
    on_one_thread,
    serialised,
    variable_outputs,
)
from opmon.scoring.graph.file import MISSING_TEXT, metadata_of, read_model
from opmon.scoring.outputs.meaning import Outputs, Scores
from opmon.scoring.outputs.planning import plan_outputs
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.session import Session, cores, open_session
from opmon.spellings import Classes

if TYPE_CHECKING:
    from opmon.abc import Head


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model in memory: see the fields of the same name of :class:`~opmon.scoring.scorer.Scorer`."""

    runner: Runner
    outputs: Outputs
    variables: Mapping[str, str]
    functions: Mapping[str, ArrayFunction]
    missing_text: str | None
    """The word that the model takes for a missing text, where it knows one."""


def load(
    path: Path,
    problem: Problem,
    classes: Classes | None = None,
    device: Device = "auto",
    threads: int | None = None,
    batch_size: int | None = None,
    lanes: int | None = None,
    output: str | None = None,
    scores: Scores = "auto",
    heads: Mapping[str, Head] | None = None,
    reference: Reference | None = None,
    layer: str | None = None,
    traced: bool = False,
) -> Loaded:
    """The arguments are those of :meth:`Scorer.open <opmon.scoring.scorer.Scorer.open>`."""
    _require(problem, batch_size=batch_size, lanes=lanes)
    keep_freed_memory()
    model = read_model(path)
    changed = adapted(model)
    source: Path | bytes = path if changed is None else serialised(changed)
    model = model if changed is None else changed
    wide = lanes or lanes_by_memory(model, threads or cores())
    session, lanes = _opened(source, device, threads, wide, path.parent)
    variables = variable_outputs(model)
    own = [item for item in session.outputs if not is_added(item.name, variables)]
    outputs = plan_outputs(model, own, problem, classes, output, scores)
    functions: dict[str, ArrayFunction] = {}
    if heads or traced:
        del session  # a device has room for one model, not for two
        if reference is not None:
            reference.require_model(path)
        score = next(item for item in own if item.name == outputs.score)
        with on_one_thread():
            compiled = compile_graph(model, outputs, score, heads or {}, reference, layer, traced=traced)
            functions = functions_of(compiled, heads or {}, reference)
        session, lanes = _opened(serialised(compiled.model), device, threads, wide, path.parent)
        variables = {**variables, **compiled.outputs}
    sizes = Sizes.of(model, session.device, lanes, batch_size, session.threads)
    word = metadata_of(model, MISSING_TEXT)
    return Loaded(Runner(session, sizes, lanes), outputs, variables, functions, word)


def _opened(
    source: Path | bytes, device: Device, threads: int | None, lanes: int, folder: Path | None = None
) -> tuple[Session, int]:
    """The session, and its lanes: a GPU is one, and what it cannot do may have all cores."""
    per_lane = threads if lanes == 1 else max(1, (threads or cores()) // lanes)
    session = open_session(source, device, per_lane, folder)
    if session.device == "cpu" or lanes == 1:
        return session, lanes
    del session
    return open_session(source, device, threads, folder), 1


def _require(problem: Problem, **counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1; got {value}")
    if problem not in PROBLEMS or not traits(problem).compares:
        raise InputError(f"a model is run for classification, multilabel or regression; got {problem!r}")
