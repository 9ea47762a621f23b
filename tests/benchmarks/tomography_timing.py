"""What the tomography benchmark times: the forest on weighted rows, and partial tomography against a straight one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tomography_tasks as tasks
from sklearn.ensemble import RandomForestClassifier

from opmon.robustness.running import Budget
from opmon.robustness.space import Space
from opmon.robustness.surrogates.forest import forest
from opmon.robustness.tomography import tomography


def bars(chosen: list[tasks.Task]) -> list[dict[str, Any]]:
    images = [task for task in chosen if task.name == "image"]
    return [_weighted_forest(), *(_wall_time(task) for task in images)]


def _weighted_forest() -> dict[str, Any]:
    """91 configurations × 10,000 inputs: the paper's repeated rows against one weighted row each."""
    space, rng = Space(("a", "b", "c")), np.random.default_rng(0)
    pairs, beyond, inputs = space.tests(0, 2), space.tests(3), 10_000
    share = rng.binomial(inputs, np.exp(-0.12 * pairs.severity_sum)) / inputs
    started = time.perf_counter()
    ours = forest(pairs, share, beyond)
    quick = time.perf_counter() - started
    right = (np.arange(inputs)[None] < (share * inputs)[:, None]).astype(int)
    started = time.perf_counter()
    grown = RandomForestClassifier(100, bootstrap=False, max_features=None, criterion="log_loss", random_state=0)
    grown.fit(np.repeat(pairs.severities, inputs, axis=0), right.ravel())
    theirs = grown.predict_proba(beyond.severities)[:, 1]
    slow = time.perf_counter() - started
    apart = float(np.abs(ours - theirs).max())
    return {
        "bar": "forest on weighted rows is faster by",
        "value": slow / quick,
        "max_difference": apart,
        "seconds": quick,
        "met": slow / quick >= 100 and apart <= 0.01,
    }


def _wall_time(task: tasks.Task) -> dict[str, Any]:
    """Three perturbations, all inputs: ours from nothing to the result, against image by image."""
    named = dict(list(task.spaces[0].items())[:3])
    space = Space(tuple(named))
    started = time.perf_counter()
    tomography(task.model, task.evaluation, list(named.values()), space, task.codec, budget=Budget(24))
    ours = time.perf_counter() - started
    started = time.perf_counter()
    _straight(task, space, named)
    straight = time.perf_counter() - started
    return {
        "bar": "wall time over a straight one's",
        "value": ours / straight,
        "seconds": ours,
        "straight_seconds": straight,
        "met": ours / straight <= 0.3,
    }


def _straight(task: tasks.Task, space: Space, named: dict[str, Any]) -> None:
    """Perturb image by image, predict the batch, for every configuration of order 0, 1 and 2."""
    inputs, truth = task.evaluation.inputs, task.evaluation.truth
    perturbations = list(named.values())
    for chain in space.tests(0, 2).chains():
        made = []
        for number in range(len(inputs)):
            image = task.codec.encode(inputs[number : number + 1])
            for which, severity in chain:
                image = perturbations[which].apply(image, severity, np.random.default_rng([number, which]))
            made.append(task.codec.decode(image))
        np.mean(task.model(np.concatenate(made)).argmax(axis=1) == truth)
