"""Figures are drawn in one thread, whoever asks for them."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from opmon.errors import InputError
from opmon.reports._drawing import drawn
from opmon.reports.estimate_figure import EstimatePoint, figure_bytes
from tests.patience import LONGEST

POINTS = [EstimatePoint(1, 0.8, 0.7, 0.9)]
WHO: ContextVar[str] = ContextVar("who", default="nobody")


@drawn
def where() -> tuple[int, str]:
    return inside()[0], WHO.get()


@drawn
def inside() -> tuple[int, str]:
    return threading.get_ident(), WHO.get()


def test_fonts_are_opened_for_one_thread_however_many_draw() -> None:
    from matplotlib.font_manager import _get_font

    figure_bytes(POINTS)
    figure_bytes(POINTS, kind="svg")
    known = _get_font.cache_info().currsize
    made = set()
    for _ in range(5):
        with ThreadPoolExecutor(3) as pool:
            made |= set(pool.map(lambda _: figure_bytes(POINTS), range(3)))
    assert len(made) == 1, "the same points, the same picture"
    assert _get_font.cache_info().currsize == known


def test_who_asks_is_known_where_it_is_drawn_and_errors_come_back() -> None:
    token = WHO.set("ann")
    thread, who = where()
    WHO.reset(token)
    assert who == "ann"
    assert thread == inside()[0] != threading.get_ident()
    with pytest.raises(InputError, match="a threshold is a finite number"):
        figure_bytes(POINTS, threshold=float("nan"))


def _size(answers: multiprocessing.Queue[int]) -> None:
    answers.put(len(figure_bytes(POINTS)))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_draws_too() -> None:
    figure_bytes(POINTS)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_size, args=(answers,), daemon=True)
    child.start()
    assert answers.get(timeout=LONGEST) == len(figure_bytes(POINTS))
    child.join(LONGEST)
