"""Tomographies for the rounds of a past, as a monitor would have kept them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sqlalchemy as sa

from opmon.reports.robustness import robustness_summary
from opmon.reports.robustness_examples import Example
from opmon.reports.robustness_examples import packed as packed_examples
from opmon.reports.robustness_files import packed
from opmon.robustness.result import Tomography
from opmon.robustness.space import Space
from opmon.store import schema, tomographies
from opmon.store.engine import Store
from tests.web.world import picture

NAMES = ("zoom", "glare", "gaussian-noise", "blur")
COSTS = np.array([0.03, 0.012, 0.06, 0.045])
QUERIES = {"far": "zoom > 2", "both": "zoom > 2 and glare > 2"}


def tomography(names: tuple[str, ...] = NAMES, seed: int = 0, ordered: bool = False, lower: float = 0.0) -> Tomography:
    """A map of made-up shares: each severity costs something, two together more than one after the other."""
    space = Space(names, ordered=ordered)
    tests = space.tests()
    rng = np.random.default_rng(seed)
    costs = np.resize(COSTS, len(names))
    loss = tests.severities @ costs + 0.02 * np.maximum(tests.order - 1, 0) * tests.severity_sum / 4 + lower
    share = np.clip(0.96 * np.exp(-loss) + rng.normal(0, 0.004, len(tests)), 0.02, 1)
    error = np.full(len(tests), 0.012)
    return Tomography(
        space=space,
        tests=tests,
        share=share,
        error=error,
        shared=error / 2,
        low=np.clip(share - 0.025, 0, 1),
        high=np.clip(share + 0.025, 0, 1),
        seen=np.where(tests.order <= 2, 400, np.where(rng.random(len(tests)) < 0.1, 400, 0)),
        inputs=640,
        effective_inputs=590.0,
        level=0.95,
        quality=tests.severity_sum / 20,
        quality_error=error,
        facts={"relation": "as labelled"},
    )


def examples(result: Tomography) -> list[Example]:
    """Six pictures under three tests, and a text under one."""
    pictures = tuple((picture(digit)[..., None] / 255).astype(np.float32) for digit in range(6))
    rows = [0, int(np.argmin(result.share))]
    shown = [
        Example(
            (case := result.case(row)).label, case.share, case.measured, pictures=tuple(p / (1 + k) for p in pictures)
        )
        for k, row in enumerate(rows)
    ]
    return [*shown, replace(shown[0], label="typos 2", pictures=(), texts=("<b>an</b> exmaple",))]


def map_rounds(store: Store, monitor: str, numbers: tuple[int, ...], result: Tomography | None = None) -> None:
    """Keep a tomography with each of these rounds; the later, the worse."""
    for place, number in enumerate(numbers):
        made = result or tomography(seed=number, lower=0.02 * place)
        with store.write() as connection:
            own = schema.rounds.c.monitor == monitor, schema.rounds.c.number == number
            row = connection.execute(sa.select(schema.rounds.c.id, schema.rounds.c.ends_at).where(*own)).one()
            queries = QUERIES if made.space.names == NAMES else {}
            told = robustness_summary(made, queries)
            seen = packed_examples(examples(made))
            tomographies.keep(connection, monitor, row.id, told, packed(made), seen, max(number - 3, 1), row.ends_at)
