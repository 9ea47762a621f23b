"""A design that tells no variance is refused further measures and slices when the configuration is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Estimator, Sampler
from opmon.config import Settings
from opmon.errors import ConfigError
from opmon.types import Draw, Estimate, Floats, Frame, Sample


@dataclass(frozen=True)
class Mine(Sampler):
    """A sampler from elsewhere."""

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return Draw("mine", frame.size, rng.integers(0, frame.size, budget))


class Weighed(Estimator):
    """An estimator that tells what its draws stand for, and not how far that varies."""

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        return Estimate(1.0, 0.0, 1.0, n=1, frame_size=1, response=1.0, method="mine")

    def coefficients(self, sample: Sample) -> Floats:
        return np.full(len(sample.draw), 1 / len(sample.draw))


class Whole(Weighed):
    """One that tells both."""

    def variance(self, sample: Sample, values: Floats) -> float:
        return float(values @ values) / len(values) ** 2


def settings(monkeypatch: pytest.MonkeyPatch, estimator: type[Estimator], **more: Any) -> Settings:
    plugged = {("sampler", "mine"): Mine, ("estimator", "mine"): estimator}
    names, load = plugins.names, plugins.load
    with monkeypatch.context() as patched:
        patched.setattr(plugins, "names", lambda kind: [*names(kind), *(n for k, n in plugged if k == kind)])
        patched.setattr(plugins, "load", lambda kind, name: plugged.get((kind, name)) or load(kind, name))
        monitor = {"model": "models:/m/1", "source": {"path": "p"}, "sampler": {"type": "mine"}, **more}
        return Settings.from_mapping({"monitors": {"m": monitor}})


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"measures": ["accuracy", {"f1": {"average": "macro"}}]}, "measures"),
        ({"slices": ["country"]}, "slices"),
    ],
)
def test_a_design_without_a_variance_has_no_further_measures_and_no_slices(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError, match=rf"{key}: the estimator of the sampler 'mine'.*variance.*srs or adaptive"):
        settings(monkeypatch, Weighed, **more)
    settings(monkeypatch, Whole, **more)
    settings(monkeypatch, Weighed, measures=["accuracy"])


def test_every_design_of_ours_tells_of_its_parts() -> None:
    ours = {one: plugins.class_of("estimator", one) for one in plugins.names("estimator")}
    ours = {one: each for one, each in ours.items() if each.__module__.startswith("opmon.")}  # others may be installed
    assert len(ours) >= 10
    assert [one for one, each in ours.items() if not each.tells_parts()] == []
