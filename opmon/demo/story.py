"""The demo: hour after hour of production, until the alarm, the retraining and the recovery."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from opmon.config import Settings, load
from opmon.demo import digits, stream
from opmon.demo.annotators import Annotators
from opmon.demo.folder import Folder
from opmon.demo.model import NAME, experiment, register, serving, train
from opmon.demo.plot import Alarm, Hour, Plan, Retrained
from opmon.demo.retraining import learn
from opmon.demo.stream import Predict, Window
from opmon.monitor import Monitor
from opmon.reports.estimate_figure import EstimatePoint, estimate_figure
from opmon.stages.cycle import Cycle
from opmon.store import outbox, queue, revisions, rounds, verdicts
from opmon.store.engine import Connection
from opmon.store.rounds import Round
from opmon.triggers.registry_tag import RETRAIN_TAG
from opmon.types import Document

Tell = Callable[[str], None]


@dataclass
class Story:
    """Runs the demo hour by hour: iterate over :meth:`tell`."""

    folder: Folder
    plan: Plan = field(default_factory=Plan)
    progress: Tell = lambda what: None
    hours: list[Hour] = field(default_factory=list)
    without_retraining: list[float] = field(default_factory=list)
    """The accuracy of version 1, had it answered version 2's windows."""
    annotators: Annotators = field(default_factory=Annotators)

    def tell(self) -> Iterator[Hour | Alarm | Retrained]:
        """Yield every hour as it ends, with the alarm and the retraining in between."""
        plan = self.plan
        self.progress("training a small network on half of scikit-learn's digits")
        training, before, after = digits.load(plan.seed)
        first = train(training, plan.seed)
        self._set_up()
        self.progress("registering version 1 in MLflow, in a SQLite file of its own")
        version, predict = self._put_into_service(first, training=len(training))
        alarm_at: int | None = None
        while len(self.hours) < plan.most and (alarm_at is None or len(self.hours) < alarm_at + plan.delay):
            hour = yield from self._hour(before, version, predict)
            if hour.alarm and alarm_at is None:
                alarm_at = hour.window
        if alarm_at is None:
            return
        retrained, model = self._retrain(training)
        yield retrained
        old, (version, predict) = predict, (retrained.version, serving(model))
        for _ in range(plan.recovered):
            yield from self._hour(after, version, predict, compare=old)

    def _set_up(self) -> None:
        plan = self.plan
        path = self.folder.configure(
            window_size=plan.window_size,
            budget=plan.budget,
            threshold=plan.threshold,
            drift_report=plan.drift_report,
            seed=plan.seed,
        )
        # not the user's environment: OPMON_DATABASE may name one that is in use
        self.settings: Settings = load(path, environment={})
        self.progress("making the databases of opmon and MLflow")
        self.monitor = Monitor.from_settings(self.settings, NAME, progress=self._step)
        self.registry = self.monitor.registry
        self.registry.check()
        self.starts_at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=plan.usual)

    def _put_into_service(self, model: bytes, **parameters: int) -> tuple[str, Predict]:
        from mlflow import MlflowClient

        uri = self.settings.mlflow.tracking_uri.get_secret_value()
        experiment(MlflowClient(uri, uri), f"opmon/{NAME}", self.folder.artifacts)
        version = register(model, uri, self.folder.artifacts, {"seed": self.plan.seed, **parameters})
        return version, serving(model)

    def _hour(
        self, pool: digits.Digits, version: str, predict: Predict, compare: Predict | None = None
    ) -> Generator[Hour | Alarm, None, Hour]:
        """One window: logged by production, drawn from by opmon, labelled by people, estimated by opmon."""
        plan, number = self.plan, len(self.hours) + 1
        window = stream.window(
            number,
            pool=pool,
            size=plan.window_size,
            drift=plan.drift_of(number),
            predict=predict,
            model_version=version,
            seed=plan.seed,
        )
        stream.write(window, self.folder.production, self.starts_at + timedelta(hours=number - 1))
        wave = 0
        while self._advance().waiting:  # the sampler draws in waves: the next when the labels of the last are in
            self.progress(f"hour {number}: annotators label {plan.budget} of {plan.window_size:,} inputs")
            self._label(window, wave)
            wave += 1
        hour = self._watched(window)
        self.hours.append(hour)
        if compare is not None:
            self.without_retraining.append(float((compare(window.digits.rows) == window.digits.truth).mean()))
        yield hour
        if hour.alarm:
            yield self._alarm(hour)
        return hour

    def _advance(self) -> Cycle:
        cycle = self.monitor.advance()
        if cycle.problems:
            raise cycle.problems[0]
        return cycle

    def _label(self, window: Window, wave: int) -> None:
        now = datetime.now(UTC)
        rng = np.random.default_rng([self.plan.seed, 4, window.number, wave])
        with self.monitor.store.write() as connection:
            tasks = queue.open_tasks(connection, NAME)
            queue.record(connection, self.annotators.answer(tasks, window.truth, now, rng), now)

    def _watched(self, window: Window) -> Hour:
        with self.monitor.store.read() as connection:
            round_ = rounds.newest(connection, NAME, 1)[0]
            revision = revisions.latest_estimate(connection, round_.id)
            verdict = verdicts.latest_verdicts(connection, round_.id)[0]
            answers = queue.answers(connection, round_.id)
            fired = self._fired(connection, round_)
        if revision is None:
            raise AssertionError(f"round {round_.number} was labelled and has no estimate")
        estimate = revision.estimate
        return Hour(
            window=window.number,
            round=round_.number,
            model_version=window.model_version,
            drift=window.drift,
            true=window.true_accuracy,
            estimate=estimate.value,
            low=estimate.low,
            high=estimate.high,
            n=estimate.n,
            labels=sum(task.truth is not None for task in answers),
            failures=revision.failures,
            ended_at=round_.ends_at or round_.opened_at,
            alarm=fired is not None,
            degraded=verdict.state == "alarm",
            message=verdict.message,
        )

    def _fired(self, connection: Connection, round_: Round) -> Document | None:
        events = [event["body"] for event in outbox.listing(connection, NAME)]
        return next((body for body in events if body["round"] == round_.number and body["type"] == "opmon.alarm"), None)

    def _alarm(self, hour: Hour) -> Alarm:
        with self.monitor.store.read() as connection:
            round_ = rounds.get(connection, NAME, hour.round)
            event = self._fired(connection, round_) or {}
        tags = self.registry.version_tags(self.registry.resolve(round_.model_uri))
        page = self.registry.download(round_.run_id or "", "round.html", self.settings.state)
        page.replace(self.folder.alarm_page)
        return Alarm(event["id"], hour.message, tags.get(RETRAIN_TAG, ""), self.folder.alarm_page)

    def _retrain(self, training: digits.Digits) -> tuple[Retrained, bytes]:
        self.progress("retraining on the training data and all that annotators have labelled in production")
        with self.monitor.store.read() as connection:
            runs = [round_.run_id for round_ in rounds.newest(connection, NAME, self.plan.most) if round_.run_id]
        lesson = learn(self.registry, runs, self.folder.production, self.settings.state / "retraining")
        model = train(training, self.plan.seed, lesson.digits)
        counts = {"labelled": len(lesson.labelled), "failures": len(lesson.failures)}
        version, _ = self._put_into_service(model, training=len(training), **counts)
        return Retrained(version, **counts), model

    def _step(self, what: str, done: int, total: int | None) -> None:
        self.progress(f"{what}: {done:,}" + (f" of {total:,} inputs" if total else " inputs"))

    def summary(self) -> dict[str, object]:
        """The story in numbers."""
        drifting = [hour.window for hour in self.hours if hour.drift]
        later = self.hours[len(self.hours) - len(self.without_retraining) :]
        return {
            "folder": str(self.folder.path),
            "seed": self.plan.seed,
            "windows": len(self.hours),
            "inside": sum(hour.inside for hour in self.hours),
            "drift_begins": drifting[0] if drifting else None,
            "alarms": [hour.window for hour in self.hours if hour.alarm],
            "accuracy_after_retraining": _mean([hour.true for hour in later]),
            "accuracy_without_retraining": _mean(self.without_retraining),
        }

    def figure(self) -> Path:
        """The estimates of all hours with the true accuracy."""
        points = [
            EstimatePoint(
                hour.round,
                hour.estimate,
                hour.low,
                hour.high,
                at=hour.ended_at,
                alarm=hour.alarm,
                model_version=hour.model_version,
            )
            for hour in self.hours
        ]
        return estimate_figure(
            points,
            self.folder.figure,
            threshold=self.plan.threshold,
            truth=[hour.true for hour in self.hours],
            title="Accuracy of digits in production: estimated and true",
        )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
