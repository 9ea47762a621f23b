"""A round as jobs: everything that scoring it takes, fixed and named by its content."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import opmon
from opmon.config.slices import cuts_of
from opmon.jobs.identity import identity
from opmon.jobs.job import PART_ROWS, LogColumns, OnlyVersion, ScoreJob
from opmon.jobs.thinning import Thinning
from opmon.jobs.versions import UNNAMED
from opmon.stages.aims import chances_of
from opmon.stages.drift import not_sampled, sampled_rows
from opmon.stages.levels import LIMIT
from opmon.stages.toolbox import Toolbox, levels_of
from opmon.store import versions
from opmon.store.rounds import Round
from opmon.types import Slice
from opmon.where import parse


def jobs_of(work: Toolbox, round_: Round, slices: Sequence[Slice], folder: Path) -> list[ScoreJob]:
    """The jobs of a round, each with a folder of its own; what is there of other jobs is removed.

    Where the log names versions, or not every row is an input, a round is one job: how many rows of a slice are its is
    known when they are read.
    """
    columns, version = work.settings.columns, _version(work, round_)
    where = None if round_.plan.where is None else parse(round_.plan.where)
    thinning = Thinning.of(round_.plan.thinning)
    logged = work.settings.scoring.by == "logged"  # the prediction is the answer itself, and is compared with none
    whole = ScoreJob(
        source=work.source,
        slices=tuple(slices),
        numbers=tuple(range(len(slices))),
        way=work.way(round_),
        problem=work.settings.problem,
        columns=LogColumns(columns.id, columns.timestamp, None if logged else columns.prediction, columns.threshold),
        folder=folder,
        monitor=work.name,
        spellings=work.settings.spellings,
        variables=work.settings.logged_variables,
        version=version,
        in_time=_in_time(work, round_),
        where=where,
        thinning=thinning,
        cuts=tuple(cut for cut in cuts_of(work.settings) if cut.of == "column"),
        aim=chances_of(round_.plan),
        neurons=None if levels_of(round_.plan) is None else max(1, LIMIT // max(1, round_.received)),
        sampled=sampled_rows(work.settings, round_),
        not_sampled=not_sampled(work.settings),
        part_rows=PART_ROWS,
    )
    some = version is not None or where is not None or thinning is not None
    shares = [whole.numbers] if some else [*_shares(slices, work.executor.rows)]
    name = identity((opmon.__version__, whole, shares))
    for other in folder.iterdir() if folder.is_dir() else ():
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return [
        replace(whole, numbers=numbers, folder=folder / name / f"{place:05}", sampled=_sample(whole, numbers))
        for place, numbers in enumerate(shares)
    ]


def _shares(slices: Sequence[Slice], rows: int | None) -> Iterator[tuple[int, ...]]:
    """The numbers of the slices of each job: as many as have about ``rows`` rows."""
    share: list[int] = []
    held = 0
    for number, piece in enumerate(slices):
        share.append(number)
        held += piece.rows
        if rows is not None and held >= rows:
            yield tuple(share)
            share, held = [], 0
    if share:
        yield tuple(share)


def _sample(whole: ScoreJob, numbers: Sequence[int]) -> NDArray[np.int64]:
    """The rows to sample of a job's share, counted from its first row."""
    first = sum(piece.rows for piece in whole.slices[: numbers[0]])
    last = first + sum(whole.slices[number].rows for number in numbers)
    return whole.sampled[(whole.sampled >= first) & (whole.sampled < last)] - first


def _in_time(work: Toolbox, round_: Round) -> datetime | None:
    """When the last input came of the rounds before: what was answered before that comes late."""
    with work.store.read() as connection:
        return versions.last_end_before(connection, round_)


def _version(work: Toolbox, round_: Round) -> OnlyVersion | None:
    plan, version = round_.plan, round_.only_version
    if version is None:
        return None
    name = plan.version_column or work.settings.columns.model_version or ""
    meant = plan.versions or {UNNAMED: plan.current_version or version}  # before versions were looked up
    return OnlyVersion(name, version, meant)
