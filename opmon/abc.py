"""The contracts of opmon: what can be plugged in, every hook with its default.

A plugin subclasses one of these classes, implements what is abstract and overrides what differs::

    from dataclasses import dataclass
    from opmon.abc import Sampler

    @dataclass(frozen=True)
    class EveryTenth(Sampler):
        start: int = 0

        def draw(self, frame, budget, rng): ...

It is named in the entry-point group that :data:`GROUPS` gives for its kind, made with the keyword arguments of the
configuration, and checked against its contract when it is loaded. Nobody asks afterwards what it is or has: every hook
may be called on every plugin of its kind. A frozen dataclass is the usual form, so that a wrong name or value is an
error when the configuration is read.

Contracts lie below everything that implements them: this module knows values, arrays and nothing else of opmon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from opmon.bets import Terms
from opmon.errors import DeliveryError, ModelError
from opmon.quantities import PROBLEMS, Problem
from opmon.types import (
    Batch,
    Draw,
    Estimate,
    Frame,
    ModelVersion,
    Pulled,
    Runnable,
    Sample,
    Signature,
    Slice,
    Task,
    Training,
    Verdict,
)

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

    from opmon.decisions.case import Case
    from opmon.estimators.tally import Tally
    from opmon.scoring.graph.monitor_graph import MonitorGraph
    from opmon.scoring.reference.fitted import Reference

J = TypeVar("J")
"""A job of an executor."""
R = TypeVar("R")
"""What a job gives."""

ArrayFunction = Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.floating[Any]]]
"""``(activations, predicted class) -> value`` of the inputs of a batch."""
Converter = Callable[[Any, Signature | None], bytes]
"""``(scikit-learn model, what it was logged to take) -> ONNX``."""
RunStatus = Literal["FINISHED", "FAILED", "KILLED"]


class Plugin:
    """What all kinds of plugins share."""

    local_paths: ClassVar[tuple[str, ...]] = ()
    """The parameters that are files or folders on this machine: relative ones are taken from the configuration's
    folder."""


class Sampler(Plugin, ABC):
    """Chooses the inputs worth a label. Pure: the same frame, budget and generator state give the same draw.

    ``draw.design`` names the estimator that understands its draws.
    """

    design: ClassVar[str | None] = None
    """The design of its draws; None where it is the name that the sampler is registered under."""

    @property
    def activation_levels(self) -> int | None:
        """In how many equal levels (2 to 256) of its range over the frame each neuron of the monitor's layer is wanted
        as ``frame.activations``, one byte per neuron and input; None where the sampler looks at no activations."""
        return None

    looks_at_predictions: ClassVar[bool] = False
    """Whether it wants ``frame.predictions``: only what a sampler looks at is read from disk."""

    def drawn_by(self) -> tuple[str, ...]:
        """The auxiliary variables that it names; empty where it takes those that the frame has, or none."""
        return ()

    @abstractmethod
    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        """Draw ``budget`` times (fewer where the frame is smaller), in order; of one that looks at labels before it
        goes on, the first wave."""

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged where the budget is spent or no wave follows."""
        return sample.draw


class Estimator(Plugin, ABC):
    """Turns the outcomes of one design's draws into an estimate with an interval. Pure."""

    @abstractmethod
    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        """The estimate from the answered draws, with a two-sided interval of ``level``."""

    def coefficients(self, sample: Sample) -> NDArray[np.float64] | None:
        """``a_k`` of the mean loss ``Σ a_k y_k``, decided by design and response alone, 0 for a draw without an answer;
        None where the estimate is no such sum. Slices, ratios and paired comparisons need it."""
        return None

    def tally(self, sample: Sample) -> Tally | None:
        """What the draws tell of parts of the frame, from which several rounds make one interval; None where the design
        does not tell: rolling estimates then join the rounds' intervals, which are wider."""
        return None

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float | None:
        """The estimated variance of ``Σ a_k values_k``; None where the design does not tell."""
        return None

    bets: ClassVar[bool] = False
    """Whether :meth:`terms` tells something, so that rules may bet on the design's draws."""

    def terms(self, sample: Sample, losses: NDArray[np.float64]) -> Terms | None:
        """Each draw as an estimate of the mean of ``losses`` on its own, given which of the draws have an answer; None
        where that is not known: rules that bet on draws are then refused when the configuration is read.

        :class:`opmon.decisions.draw_values.DrawValues` says what must hold of them.
        """
        return None


class Source(Plugin, ABC):
    """Reads what production logged. It keeps no state: positions come in, slices go out.

    It goes with the jobs of a round to wherever they run, and must be picklable.
    """

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns with what production answered, as far as the source knows: annotators are not shown them."""
        return ()

    @abstractmethod
    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """What can be read now and starts where ``positions`` (part -> last stop) end; oldest first.

        About ``limit`` rows at the most, where it is given.
        """

    @abstractmethod
    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order, the same ones every time it is asked.

        Rows that cannot be read, where that does not stop the source, keep their numbers: their slice has fewer rows,
        and one of its batches says in ``unreadable`` why, and how many.
        """

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of the slices with these numbers alone, in order, and otherwise just as :meth:`read` gives them:
        with the columns and types that all ``slices`` have together. A job reads its share of a round by it."""
        wanted = frozenset(numbers)
        return (batch for batch in self.read(slices) if batch.slice_index in wanted)

    @abstractmethod
    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again: for each slice number the row numbers wanted; ordered by slice, then as asked."""


class Head(Plugin):
    """An auxiliary variable: one number per input, larger = more suspicious.

    It is computed in the model's graph (:meth:`nodes`), or, where it cannot be, in NumPy (:meth:`function`). One that
    learns from training data says so by :attr:`fitted_as`, and finds what :meth:`fit` gave in the reference. It goes
    with the jobs of a round to wherever they run, and must be picklable.
    """

    of_classes: ClassVar[bool] = False
    """Whether it needs a model that tells classes apart."""

    def bind(self, fetch: Callable[[str], Path]) -> Self:
        """The same head with the registry's models that it names as files on this machine, by ``fetch(uri)``."""
        return self

    @property
    def fitted_as(self) -> str | None:
        """The name under which the reference keeps what it learns; None where it learns nothing.

        ``opmon reference`` fits it, and the graph's ``learned`` and the reference's ``weights`` have it.
        """
        return None

    def fit(self, training: Training, seed: int) -> Mapping[str, NDArray[Any]]:
        """What it learns, as named arrays; the same data and seed give the same ones."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it is computed from, by :meth:`of_columns`; none where the model tells it."""
        return ()

    def of_columns(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.floating[Any]]:
        """The variable of some inputs from their numbers in :attr:`columns`, NaN where one is missing."""
        raise NotImplementedError

    def nodes(self, graph: MonitorGraph) -> str | None:
        """Add ONNX nodes to the :class:`~opmon.scoring.graph.monitor_graph.MonitorGraph` and name the float32 tensor of
        one value per input; None where this is no graph, or not for this model."""
        return None

    def function(self, reference: Reference | None) -> ArrayFunction | None:
        """The same in NumPy, given the fitted :class:`~opmon.scoring.reference.fitted.Reference`, where there is one;
        None where the variable has no such function."""
        return None


class Rule(Plugin, ABC):
    """Concludes something from the rounds of one model version, one after another in the order of the rounds. Pure."""

    name: str
    """What its verdicts and events are known by: a field, so that a monitor may have two of a kind."""

    problems: ClassVar[tuple[Problem, ...]] = PROBLEMS
    """The problems that it is for."""
    advisory: ClassVar[bool] = False
    """Whether its alarms are advice: kept and shown, told to no action, and nothing the model's status follows."""
    counts: ClassVar[bool] = False
    """Whether it also judges rounds that end without an estimate."""
    bets: ClassVar[bool] = False
    """Whether it bets on the values of draws: with a sampler whose estimator does not tell them (``Estimator.bets``)
    such a rule is refused when the configuration is read."""

    def rival_version(self) -> str | None:
        """The address of the model version that is to answer the drawn inputs too; None where it compares with none."""
        return None

    def watched_robustness(self) -> str | None:
        """Whose robustness it wants to know: a saved query's name, or ``""`` for that of all tests; None for none."""
        return None

    def line(self) -> float | None:
        """The line that figures of the estimates draw for it, in the unit of the estimate; None where it has none."""
        return None

    def looks_back(self, before: Mapping[str, Any]) -> int | None:
        """How many of the last final estimates ``case.estimates`` is to hold, this round's among them; None: all.

        ``before`` is what ``case.before`` will be: a rule that keeps there what it needs looks at its own round alone,
        and judging one costs the same however old the monitor is.
        """
        return 1

    @abstractmethod
    def judge(self, case: Case) -> Verdict:
        """The verdict on one round.

        What it puts into ``details`` comes back as ``case.before`` with the next round of the same model version.
        """

    def restate(self, before: Mapping[str, Any], details: Mapping[str, Any]) -> Verdict | None:
        """The verdict on a round that was judged before, now after other rounds before it; None: it stays as it was.

        ``details`` are those of its verdict. Asked for where a label came late for an earlier round.
        """
        return None


class Action(Plugin, ABC):
    """Acts on an event. May be called again with the same event: ``event["id"]`` is the idempotency key."""

    def bind(self, registry: Registry) -> Self:
        """The same action with the registry it writes to, where it does."""
        return self

    @abstractmethod
    def act(self, event: Mapping[str, Any]) -> None:
        """Do it, or raise :class:`opmon.errors.DeliveryError` where the target did not take it."""


class LabelProvider(Plugin, ABC):
    """Hands tasks to annotators and brings back what they say. Tasks are known by their key.

    It may be called again with what it was called with before: opmon is killed between handing tasks over and noting
    that it did, or between hearing answers and keeping them, and asks again. A call that takes longer than
    ``patience`` is not waited for, and a provider that fails is left alone for a while; both cost nothing else.

    Raises :class:`~opmon.errors.UnavailableError` where trying again later is right.
    """

    patience: ClassVar[float] = 60.0
    """For how many seconds a call is waited for."""
    batch: ClassVar[int] = 500
    """How many tasks are handed over in one call, at most."""

    def bind(self, monitor: str) -> Self:
        """The same provider for the tasks of one monitor."""
        return self

    def check(self) -> str:
        """One line that says what answered, or an error."""
        return f"{type(self).__name__} needs no check"

    @abstractmethod
    def push(self, tasks: Sequence[Task]) -> None:
        """Hand tasks over, in this order; one that is there already, by its key, stays as it is."""

    @abstractmethod
    def pull(self, since: str) -> Pulled:
        """What was said since the cursor ``since``; ``""`` is the beginning. What is told twice counts once."""

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        """Which of these tasks, all that were handed over and still wait for an answer, it still has.

        The others are handed over again. What is not among ``open_keys`` need not be asked any more.
        """
        return open_keys


class Perturbation(Plugin, ABC):
    """Changes a batch of inputs at a severity 1..m; severity 0 is the identity and never reaches it.

    It is deterministic given the generator, and keeps shape, dtype and range. Where it draws random numbers it draws
    the same ones whatever the severity, so that a higher severity is more of the same change to the same input: this is
    what makes differences between tests precise (common random numbers).

    Images come as float32, inputs × height × width × channels in [0, 1]; texts as an array of str objects; tables as
    inputs × columns; any other kind as the model takes it.
    """

    kind: ClassVar[Literal["image", "text", "table", "any"]] = "any"

    def fitted(self, inputs: NDArray[Any]) -> Self:
        """The same perturbation, knowing the inputs it will change, such as the spread of a table's columns."""
        return self

    @abstractmethod
    def apply(self, inputs: NDArray[Any], severity: int, rng: np.random.Generator) -> NDArray[Any]:
        """The changed inputs; ``inputs`` are left as they are."""


class Registry(Plugin, ABC):
    """Holds the models that are watched, and keeps what opmon finds out about them.

    Models are addressed as ``models:/NAME@ALIAS`` and ``models:/NAME/VERSION``. What is found out goes into *runs*: one
    for each model version, which is its history, and one for each round; they hold numbers, parameters and files.
    Making the object asks nobody anything. It may be used from several threads, and every call may be repeated: opmon
    is killed and asks again, and nothing may be doubled by that.

    Errors: :class:`~opmon.errors.RegistryUnavailable` where trying again later is right,
    :class:`~opmon.errors.NotFoundError` where there is no such model, run or file,
    :class:`~opmon.errors.ModelError` where a model cannot be used, :class:`~opmon.errors.InputError` for what is no
    address, key or name.
    """

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it is, without credentials."""

    @abstractmethod
    def check(self) -> str:
        """One line that says what answered, or an error."""

    def give_up(self) -> None:
        """Wait for nothing any more, now and later: opmon is stopping."""
        return

    # --- models ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def resolve(self, uri: str) -> ModelVersion:
        """The version that an address means now."""

    @abstractmethod
    def fetch_onnx(self, model: ModelVersion, into: Path, converter: Converter | None = None) -> Path:
        """The version's ONNX file on this machine: where it is, or copied below ``into`` once for each version.

        ``converter`` makes one of a scikit-learn model, where the registry has such models; None: none is loaded.
        """

    @abstractmethod
    def registered_at(self, model: ModelVersion) -> datetime:
        """When the version was registered: whatever was labelled before, it may have been trained on."""

    def signature(self, model: ModelVersion) -> Signature | None:
        """What the version was logged to take; None where nobody said."""
        return None

    def original(self, model: ModelVersion, into: Path) -> Any:
        """The scikit-learn model that its ONNX file was made from. Loading it runs code that is in it."""
        raise ModelError(f"{type(self).__name__} holds no scikit-learn model that {model.uri} was made from")

    def runnable(self, model: ModelVersion, into: Path) -> Runnable:
        """The version as it was logged, copied below ``into`` once, and the script that serves it in a process."""
        raise ModelError(f"{type(self).__name__} runs no models; set scoring: {{by: onnx}} or {{by: logged}}")

    @abstractmethod
    def version_tags(self, model: ModelVersion) -> dict[str, str]:
        """The tags of a version."""

    @abstractmethod
    def tag_version(self, model: ModelVersion, tags: Mapping[str, object]) -> None:
        """Set tags of a version; the others stay."""

    def set_alias(self, model: ModelVersion, alias: str) -> None:
        """Let ``models:/NAME@ALIAS`` mean this version."""
        raise DeliveryError(f"{type(self).__name__} moves no aliases; use the action registry_tag", final=True)

    def remove_alias(self, model: ModelVersion, alias: str) -> None:
        """Take an alias away, where it means this version; otherwise nothing is done."""
        raise DeliveryError(f"{type(self).__name__} moves no aliases; use the action registry_tag", final=True)

    # --- runs --------------------------------------------------------------------------------------------------------

    def experiment(self, name: str) -> str:
        """What :meth:`run` calls the group of runs of this name, made where there is none."""
        return name

    @abstractmethod
    def run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        """The id of the run with this key, made where there is none: one run, however often and by whom it is asked."""

    def finish_run(self, run_id: str, status: RunStatus = "FINISHED") -> None:
        """End a run; one that ended may be told more, and be ended again."""
        return

    def tag_run(self, run_id: str, tags: Mapping[str, object]) -> None:
        """Say something of a run that is neither a parameter nor a number."""
        return

    def log_params(self, run_id: str, params: Mapping[str, object]) -> None:
        """Keep how a round was made; of a key that is told twice the first value stays."""
        return

    @abstractmethod
    def log_metrics(
        self,
        run_id: str,
        metrics: Mapping[str, float | None],
        step: int,
        at: datetime,
        model: ModelVersion | None = None,
    ) -> None:
        """Log numbers at a step and moment; the same again is kept once, and None, NaN and infinity are left out."""

    @abstractmethod
    def metric_history(self, run_id: str, key: str) -> list[tuple[int, datetime, float]]:
        """All values of a metric as (step, moment, value), by step; empty where there is none of that name."""

    @abstractmethod
    def log_artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """Keep a file with the run, in a folder there; one of the same name is replaced."""

    def log_artifacts(self, run_id: str, directory: Path, folder: str | None = None) -> None:
        """Keep all files below a folder with the run."""
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            parts = [part for part in (folder, *path.parent.relative_to(directory).parts) if part]
            self.log_artifact(run_id, path, "/".join(parts) or None)

    @abstractmethod
    def download(self, run_id: str, artifact_path: str, into: Path) -> Path:
        """A file or folder of the run, copied below ``into``."""

    def publish(self, model: ModelVersion, tag: str, experiment: str, path: Path) -> str:
        """Keep a file that belongs to the version, in a run of its own, and name it in the version's ``tag``."""
        key = f"{tag}:{model.name}:{model.version}".replace("'", "").replace("\\", "")
        run_id = self.run(self.experiment(experiment), key, f"{model.name} v{model.version}")
        self.log_artifact(run_id, path)
        self.finish_run(run_id)
        self.tag_version(model, {tag: f"{run_id}/{path.name}"})
        return run_id

    def published(self, model: ModelVersion, tag: str, into: Path) -> Path | None:
        """The file that :meth:`publish` named in the version's ``tag``, copied below ``into``; None without one."""
        run_id, _, name = self.version_tags(model).get(tag, "").rpartition("/")
        if not run_id:
            return None
        path = into / run_id / name
        return path if path.is_file() else self.download(run_id, name, path.parent)

    def run_project(
        self,
        uri: str,
        entry_point: str,
        parameters: Mapping[str, str],
        experiment: str,
        event: str,
        *,
        version: str | None = None,
        backend: str = "local",
        env_manager: str = "local",
    ) -> str:
        """Start the project at ``uri`` for an event, once, and do not wait for it; gives its run."""
        raise DeliveryError(
            f"{type(self).__name__} runs no projects; use the action command or webhook to retrain", final=True
        )


class Executor(Plugin, ABC):
    """Runs jobs: here, in other processes, or on other machines.

    A job and its result can be pickled, and the function is one that the other side can import. A job writes into a
    folder, which must be the same one for everybody (a shared disk), and may be run again: after a kill, or twice at
    the same time; it then gives the same result.
    """

    rows: int | None = None
    """About how many inputs one job should have, as far as they can be told apart: a file is never cut. None: a round
    is one job."""

    @abstractmethod
    def run(self, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
        """``function(job)`` of every job, in their order, each as soon as it and those before it are done.

        An error of a job is raised as it is, an :class:`~opmon.errors.OpmonError` among them; whoever does not answer
        is an :class:`~opmon.errors.UnavailableError`: the round then goes on the next time, with the jobs left to do.
        """
