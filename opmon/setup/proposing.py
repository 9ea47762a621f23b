"""The proposal of a configuration that fits a registered model and a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmon import plugins
from opmon.abc import Registry
from opmon.config.fields import absolute
from opmon.errors import InputError, OpmonError, UnavailableError
from opmon.jobs.versions import rows_of, said_of
from opmon.setup.answers import Said, answered
from opmon.setup.by_flavor import by_flavor
from opmon.setup.by_log import by_log
from opmon.setup.by_onnx import by_onnx
from opmon.setup.choice import Choice, in_a_comment, written
from opmon.setup.log import Log, look
from opmon.setup.roles import place_columns
from opmon.setup.sizes import sizes
from opmon.setup.slices import dividing
from opmon.setup.source import below, keys_of
from opmon.setup.truth import truth_of
from opmon.setup.world import Answers, World
from opmon.stages.originals import BOOSTERS, CODE
from opmon.stages.versions import versions_meant
from opmon.types import ModelVersion

_ORDER = (
    "model", "problem", "scoring", "convert_sklearn", "scores", "classes", "inputs", "source", "columns", "truth",
    "round", "labels",
)  # fmt: skip
_WHY = {"cursor": "the order in which rows came: a time that grows, and the key behind it"}
_HEAD = """\
# Written by opmon init from what the model and the log say: behind each key is why. Look at what is guessed.
# Every other key has its default: opmon init, without --from, writes an example with all of them.
"""
_RULES = "    # rules:                                # when the first estimates are there; see opmon explain"
_EXAMPLES = {
    "classification": ("accuracy_level", "{type: accuracy_level, threshold: 0.9}"),
    "multilabel": ("accuracy_level", "{type: accuracy_level, threshold: 0.8}"),
    "judged": ("accuracy_level", "{type: accuracy_level, threshold: 0.9}"),
    "regression": ("measure_level", "{type: measure_level, threshold: 3}     # a mean absolute error above 3"),
}
"""A rule that can watch the problem."""
_MEASURES = """\
    # measures: [mean_absolute_error, {within_tolerance: {tolerance: 1}}]   # in the label's unit; see opmon explain
    # main: mean_absolute_error
    # unit: days                            # what the label is measured in
"""
"""What else can be told of a regression than its mean squared error, which says little to most."""


@dataclass(frozen=True)
class Proposal:
    """A configuration of one monitor, with the reasons for it, and what could not be found out."""

    monitor: str
    text: str
    choices: tuple[Choice, ...]
    remarks: tuple[str, ...]


def propose(uri: str, source: str, tracking_uri: str, folder: Path, kept: Path, trust: bool = False) -> Proposal:
    """A configuration for the model ``uri`` and the log ``source``, in a file of ``folder``.

    The model's files are kept in the folder ``kept``. No code in the model is run without ``trust``. Where the model
    cannot be asked, production's logged answers are judged; an error if there are none.
    """
    registry: Registry = plugins.make("registry", "mlflow", {"tracking_uri": tracking_uri, "registry_uri": None})
    model = registry.resolve(uri)
    keys = keys_of(source, folder, tracking_uri)
    log = look(keys, folder)
    place = absolute(str(keys.get("path", "")), folder)
    world = World(registry, model, registry.signature(model), log, keys, place, kept, trust, uri)
    choices, remarks = _with_all_classes(*_chosen(world))
    first = [
        Choice(("model",), uri, f"version {model.version} ({', '.join(model.flavors) or 'no files'})"),
        *(Choice(("source", key), value, _WHY.get(key, "")) for key, value in keys.items()),
        *log.source,
    ]
    ordered = sorted([*first, *choices], key=_place)
    name = _name(model)
    text = _text(name, ordered, tracking_uri, folder, remarks) + dividing(log, ordered)
    return Proposal(name, text, tuple(ordered), tuple(remarks))


def _chosen(world: World) -> tuple[list[Choice], list[str]]:
    refused: list[str] = []
    for way in _ways(world):
        try:
            if way == "logged":
                return _logged(world, refused)
            choices, fit, answers = by_flavor(world) if way == "flavor" else by_onnx(world, way == "converted")
        except UnavailableError:
            raise
        except OpmonError as exc:
            refused.append(f"{_WAYS[way]}: {str(exc).rstrip('.')}")
            continue
        found, remarks = _answering(world, choices, fit.columns, answers)
        return found, [*refused, *remarks]
    raise InputError(_nothing(world, refused))


def _with_all_classes(choices: list[Choice], remarks: Sequence[str]) -> tuple[list[Choice], Sequence[str]]:
    """Without classes of which one alone was seen, as where the others are rare: only the user knows their names."""
    seen = next((choice for choice in choices if choice.key == ("classes",) and len(choice.value) < 2), None)
    if seen is None:
        return choices, remarks
    name = ", ".join(map(repr, seen.value)) or "none"
    remark = f"of the classes only {name} was seen: name all of them in 'classes', in the order of the scores"
    return [choice for choice in choices if choice is not seen], [*remarks, remark]


_WAYS = {
    "onnx": "the model's ONNX file cannot be used",
    "converted": "the model is not converted to ONNX",
    "flavor": "the model cannot be asked as MLflow runs it",
    "logged": "production's own answers cannot be judged",
}


def _ways(world: World) -> Iterator[str]:
    """How inputs may get their answers, best first."""
    flavors = world.model.flavors
    if "onnx" in flavors:
        yield "onnx"
    else:
        if set(BOOSTERS) & set(flavors) or (world.trust and set(CODE) & set(flavors)):
            yield "converted"
        if world.trust and flavors:
            yield "flavor"
    yield "logged"


def _answering(
    world: World, choices: list[Choice], taken: Sequence[str], answers: Answers
) -> tuple[list[Choice], Sequence[str]]:
    """The keys that say how the model is asked, with those of the log's other columns."""
    log = world.log
    placed = [*place_columns(log, taken, world.registry, world.model)]
    problem = next(choice.value for choice in choices if choice.key == ("problem",))
    classes = answers.classes or tuple(sorted(set(map(str, answers.predictions.tolist()))))
    left = [name for name in log.rows.column_names if name not in {*taken, *(choice.value for choice in placed)}]
    said = answered(log, left, _of_version(world, answers, placed), problem, classes)
    found = [*choices, *placed, *said.choices, *_named(said, answers, problem)]
    names = next((choice.value for choice in found if choice.key == ("classes",)), classes)
    truth = truth_of(log, (*taken, *_columns(found)), problem, names)
    return [*found, *truth, *_rest(log, placed)], said.remarks


def _of_version(world: World, answers: Answers, placed: Sequence[Choice]) -> Answers:
    """The answers to the rows that this version answered in production, where the log says which did."""
    names = [choice.value for choice in placed if choice.key == ("columns", "model_version")]
    for name in names:
        column = world.log.column(name)
        meant = versions_meant(said_of(column, name), name, world.model, world.registry)
        kept = rows_of(column, name, world.model.version, meant)[answers.rows]
        if kept.any():
            return replace(answers, rows=answers.rows[kept], predictions=answers.predictions[kept])
    return answers


def _named(said: Said, answers: Answers, problem: str) -> Iterator[Choice]:
    """The classes, where neither the model nor the log names them."""
    named = {choice.key for choice in said.choices}
    if problem == "classification" and answers.classes is None and ("classes",) not in named:
        seen = sorted(set(map(str, answers.predictions.tolist())))
        yield Choice(("classes",), seen, "what the model answered: add those that it did not", guessed=True)


def _logged(world: World, refused: list[str]) -> tuple[list[Choice], list[str]]:
    choices, taken = by_log(world.log)
    placed = [*place_columns(world.log, taken, world.registry, world.model)]
    said = {choice.key: choice.value for choice in choices}
    classes = said.get(("classes",), ())
    truth = truth_of(world.log, (*taken, *_columns(placed)), said[("problem",)], classes)
    found = [*choices, *placed, *truth, *_rest(world.log, placed)]
    scored = any(choice.key == ("columns", "scores") for choice in choices)
    if not scored and not any(choice.value == "regression" for choice in choices):
        why = "every input alike: there are no scores to draw by"
        found = [*found, Choice(("sampler", "type"), "srs", why)]
    remarks = [*refused]
    if not world.trust and world.model.flavors and "onnx" not in world.model.flavors:
        remarks.append("the registered model has no ONNX file and is not asked: --trust lets opmon run it")
    return found, remarks


def _columns(choices: Sequence[Choice]) -> list[str]:
    """The columns of the log that are taken by keys of ``columns``."""
    values = [choice.value for choice in choices if choice.key[0] in ("columns", "variables")]
    return [name for value in values for name in (value if isinstance(value, list) else [value])]


def _rest(log: Log, placed: Sequence[Choice]) -> Iterator[Choice]:
    times = [choice.value for choice in placed if choice.key == ("columns", "timestamp")]
    yield from sizes(log, times[0] if times else None)


def _nothing(world: World, reasons: Sequence[str]) -> str:
    """The error that there is no way to score, with the ways that there could be."""
    trust = "" if world.trust or "onnx" in world.model.flavors or not world.model.flavors else (
        f"; --trust, which lets opmon run the registered model ({', '.join(world.model.flavors)}) and so the code in it"
    )  # fmt: skip
    return (
        f"{world.uri} cannot be watched with this log: {'; '.join(reasons)}. There are these ways: an ONNX flavor of "
        f"the model (mlflow.onnx.log_model){trust}; or production's own answers in a column of the log, such as "
        f"prediction"
    )


def _name(model: ModelVersion) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-]+", "-", model.name).strip("-.")[:100] or "model"


def _place(choice: Choice) -> int:
    return _ORDER.index(choice.key[0]) if choice.key[0] in _ORDER else len(_ORDER)


def _text(name: str, choices: Sequence[Choice], tracking_uri: str, folder: Path, remarks: Sequence[str]) -> str:
    services = written(
        [
            Choice(("mlflow", "tracking_uri"), _address(tracking_uri, folder)),
            Choice(
                ("database",), "sqlite:///opmon.db", "rounds, tasks and labels; PostgreSQL for more than one machine"
            ),
            Choice(("state",), ".opmon", "cached models and work files"),
        ]
    )
    notes = "".join(f"# {in_a_comment(remark)}\n" for remark in remarks)
    return f"{_HEAD}{notes}\n{services}\n\nmonitors:\n  {name}:\n{written(choices, 4)}\n{_rules(choices)}"


def _rules(choices: Sequence[Choice]) -> str:
    """An example of a rule that can watch the problem, and of measures where the usual one says little, as comments."""
    said = {choice.key: choice.value for choice in choices}
    problem = str(said.get(("problem",), "classification"))
    rule, example = _EXAMPLES[problem]
    return f"{_MEASURES if problem == 'regression' else ''}{_RULES} {rule}\n    #   - {example}\n"


def _address(tracking_uri: str, folder: Path) -> str:
    """The address as the file says it: relative to its folder where it is below it, and never a password."""
    scheme, _, rest = tracking_uri.partition(":///")
    if scheme.startswith("sqlite") and rest:
        return f"{scheme}:///{below(Path(rest), folder)}"
    return "${MLFLOW_TRACKING_URI}" if "@" in tracking_uri else tracking_uri
