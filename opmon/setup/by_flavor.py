"""The configuration for a registered model that MLflow runs, found by asking it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opmon.errors import ModelError, OpmonError
from opmon.scoring.flavor.process import ModelFailed, WorkerFailed
from opmon.scoring.flavor.scorer import FlavorScorer
from opmon.setup.by_onnx import Found
from opmon.setup.choice import Choice
from opmon.setup.inputs import Fit, fits_flavor
from opmon.setup.roles import is_answer
from opmon.setup.world import World, answers_of
from opmon.stages.models import way_of
from opmon.types import Document
from opmon.wording import counted

_PATIENCE = "1m"
"""A model that takes longer for some inputs is asked for fewer at a time: an input on which it hangs is left out."""
_FEW = 50
"""More different whole numbers than that are numbers, and no classes."""
_OFTEN = 0.5
"""In more of the rows than that free text says something else."""


def by_flavor(world: World) -> Found:
    """The keys of a monitor that asks the model itself, in a process of its own."""
    why = "the model as MLflow runs it, in a process of its own: it runs code in the model, as --trust allows"
    base = [Choice(("scoring",), {"by": "flavor", "trust": True}, why)]
    asked = Choice(("scoring",), {"by": "flavor", "trust": True, "timeout": _PATIENCE})
    reason = "no column of the log fits what the model takes"
    for fit in fits_flavor(world.signature, world.log, world.place):
        try:
            scorer: Any = way_of(
                world.settings([asked, *fit.choices]), world.registry, world.model, world.folder
            ).open()
            problem, *meaning = _problem(world, scorer, fit)
            scorer = replace(scorer, problem=problem.value, meaning=meaning[0].value if meaning else "auto")
            scored = list(scorer.score([world.batch]))
            scorer.close()
            found = answers_of(scorer, scored, world.batch.rows.num_rows)
            return [*base, problem, *meaning, *fit.choices], fit, found
        except (OpmonError, ModelFailed, WorkerFailed) as exc:
            reason = str(exc)
    raise ModelError(f"{reason}; the log has: {', '.join(world.log.rows.column_names)}")


def _problem(world: World, scorer: FlavorScorer, fit: Fit) -> list[Choice]:
    """The problem (classes or numbers), from the model's answers to some rows, and what scores are."""
    told, table = scorer.ask(world.batch.rows.slice(0, 200))
    classes = scorer.worker.told.get("classes")
    if classes is not None:
        return [Choice(("problem",), "classification", f"the model knows {len(classes)} classes")]
    return _of_answers(world, told, table, fit)


def _of_answers(world: World, told: Document, table: pa.Table, fit: Fit) -> list[Choice]:
    if "scores" in table.column_names:
        named = "labels" in table.column_names or told.get("classes")
        return _of_scores(world, fit, table["scores"].combine_chunks(), named)
    return [_of_labels(world, table, fit)]


def _of_labels(world: World, table: pa.Table, fit: Fit) -> Choice:
    labels = _answered(table["labels"].combine_chunks())
    numbers = pa.types.is_floating(labels.type) or pa.types.is_integer(labels.type)
    whole = not numbers or pc.all(pc.equal(labels, pc.floor(labels))).as_py()
    different = pc.count_distinct(labels).as_py()
    if not numbers and different > max(_FEW, _OFTEN * len(labels)):
        raise ModelError(f"the model answers {len(labels)} inputs with {different} texts, which are no classes")
    if whole and (different <= _FEW or not numbers):
        return Choice(("problem",), "classification", "the model answers with one of a few words or whole numbers")
    two = _few(world, fit, 2)
    if not whole and pc.min(labels).as_py() >= 0 and pc.max(labels).as_py() <= 1 and two:
        why = f"the model gives a number between 0 and 1, and {two!r} says one of two things"
        return Choice(("problem",), "classification", why, guessed=True)
    return Choice(("problem",), "regression", "the model answers with numbers")


def _answered(labels: pa.Array) -> pa.Array:
    """The answers without the inputs that the model leaves open, such as those that lack a value."""
    known = labels.is_valid()
    if pa.types.is_floating(labels.type):
        known = pc.and_kleene(known, pc.is_finite(labels))
    if not pc.any(known, min_count=0).as_py():
        raise ModelError(f"the model answers none of {counted(len(labels), 'input')}")
    return labels.filter(known)


def _few(world: World, fit: Fit, most: int) -> str | None:
    """A column of answers with at least two different values, and no more than that."""
    log = world.log
    names = [name for name in log.rows.column_names if name not in fit.columns and is_answer(name)]
    return next((name for name in names if 2 <= log.different(name) <= most), None)


def _of_scores(world: World, fit: Fit, scores: pa.Array, named: object) -> list[Choice]:
    width = scores.type.list_size
    values = np.asarray(scores.flatten()).reshape(-1, width)
    values = values[np.isfinite(values).all(axis=1)]
    problem = Choice(("problem",), "classification", f"the model gives {width} scores")
    if named or ((values >= -1e-3).all() and np.allclose(values.sum(axis=1), 1, atol=1e-2)):
        return [problem]
    said = _few(world, fit, width)
    if said is not None:
        why = f"they are no probabilities, and {said!r} says one of so many things at most"
        return [problem, Choice(("scores",), "logits", why, guessed=True)]
    raise ModelError(
        f"the model gives {width} numbers for each input, which are no probabilities, and a monitor watches one "
        f"number or one class. If they are logits of {width} classes, set scores: logits in opmon.yaml; else register "
        f"a model that gives the one that matters"
    )
