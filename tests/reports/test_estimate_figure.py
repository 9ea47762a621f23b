from __future__ import annotations

import io
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from opmon.errors import InputError
from opmon.quantities import BIAS, MEAN_SCORE, mean_squared_error
from opmon.reports._estimate_layout import _tick, _ticks, draw
from opmon.reports.estimate_figure import EstimatePoint, estimate_figure, figure_bytes
from opmon.reports.palette import DARK, LIGHT, darkened

START = datetime(2026, 9, 3, tzinfo=UTC)


def points(count: int, **changes: object) -> list[EstimatePoint]:
    rng = np.random.default_rng(count)
    made = []
    for i in range(count):
        value = 0.93 - 0.15 * (i > count / 2) + rng.normal(0, 0.01)
        fields = {
            "at": START + timedelta(days=i),
            "alarm": i == count // 2 + 1,
            "model_version": str(1 + 2 * i // count),
        }
        made.append(EstimatePoint(i + 1, value, value - 0.04, value + 0.03, **(fields | changes)))  # type: ignore[arg-type]
    return made


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def near(image: np.ndarray, colour: str) -> int:
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((abs(image - wanted).sum(axis=2) < 12).sum())


@pytest.mark.parametrize("count", [0, 1, 2, 20, 60, 61, 300])
def test_a_png_of_any_number_of_rounds(tmp_path: Path, count: int) -> None:
    path = estimate_figure(points(count), tmp_path / "new" / "accuracy.png", threshold=0.9)
    image = pixels(path.read_bytes())
    assert image.shape == (840, 1800, 3)
    assert near(image, LIGHT.ink) > 500
    assert (near(image, LIGHT.estimate) > 100) is (count > 0)
    assert path.stat().st_size < 400_000


def test_an_svg_is_the_same_every_time_and_holds_no_script(tmp_path: Path) -> None:
    text = estimate_figure(points(20), tmp_path / "accuracy.svg").read_text()
    assert text.lstrip().startswith("<?xml")
    assert "<script" not in text
    assert "<dc:date>" not in text
    assert len(text) < 300_000


def test_each_thing_known_is_drawn_in_its_colour() -> None:
    with_all = pixels(figure_bytes(points(20), threshold=0.9, truth=[0.9] * 20))
    without = pixels(figure_bytes(points(20, alarm=False)))
    for colour in (LIGHT.alarm, LIGHT.threshold):
        assert near(with_all, colour) > 50
        assert near(without, colour) == 0


def test_provisional_points_are_hollow() -> None:
    final = near(pixels(figure_bytes(points(1, alarm=False))), LIGHT.estimate)
    hollow = near(pixels(figure_bytes(points(1, alarm=False, provisional=True))), LIGHT.estimate)
    assert hollow < final


@pytest.mark.parametrize("width", [360, 900])
def test_a_light_figure_is_darkened_as_if_drawn_dark(width: int) -> None:
    some = points(20)
    light, dark = (figure_bytes(some, kind="svg", threshold=0.9, width=width, dark=dark) for dark in (False, True))
    named = re.compile(rb'(id="|#|xlink:href="#|url\(#)[a-z]*[0-9a-f]{10}')
    assert named.sub(b"", darkened(light)) == named.sub(b"", dark)


def test_dark_and_narrow() -> None:
    image = pixels(figure_bytes(points(20), dark=True, width=360))
    assert image.shape[1] == 720
    assert near(image, DARK.paper) > image.shape[0] * image.shape[1] * 0.5


def test_names_are_drawn_as_they_are_whatever_they_hold() -> None:
    hostile = points(3, model_version="$\\frac{<b>\U0001f600")
    assert len(figure_bytes(hostile, title="$\\frac{x\n" + "long " * 500)) > 10_000


@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize("count", [1, 2, 20, 60, 300, 1234])
@pytest.mark.parametrize("versions", ["two", "many", "in turns"])
def test_no_label_overlaps_another(count: int, width: int, versions: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    rounds = points(count)
    if versions == "many":
        rounds = [replace(point, model_version=f"{point.round:04}-long-name") for point in rounds[:60]]
    if versions == "in turns":
        rounds = [replace(point, model_version=f"{point.round % 4}-long-name") for point in rounds]
    figure = draw(rounds, threshold=0.9, truth=[0.9] * len(rounds), title="Accuracy", width=width, dark=False)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    axes = figure.axes[0]
    for labels in (axes.get_xticklabels(), axes.get_yticklabels(), axes.texts):
        boxes = [label.get_window_extent(renderer) for label in labels if label.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    legend = figure.legends[0].get_window_extent(renderer)
    assert legend.x1 <= figure.bbox.x1
    assert not any(legend.overlaps(text.get_window_extent(renderer)) for text in axes.texts)


def test_a_line_never_connects_two_versions() -> None:
    figure = draw(points(20), threshold=None, truth=[None] * 20, title="", width=900, dark=False)
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2 and line.get_linestyle() == "-"]
    assert sorted(tuple(line.get_xdata()) for line in lines) == [tuple(range(1, 11)), tuple(range(11, 21))]


def test_versions_that_take_turns_are_told_apart() -> None:
    turns = [replace(point, model_version=str(point.round % 2)) for point in points(20)]
    figure = draw(turns, threshold=None, truth=[None] * 20, title="", width=900, dark=False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    colours = {label: handle.get_color() for handle, label in zip(handles, labels, strict=True) if label[0] == "v"}
    assert colours == {"v1": LIGHT.estimate, "v0": LIGHT.others[0]}


def test_the_interval_is_called_by_its_level() -> None:
    figure = draw(points(3, level=0.9), threshold=None, truth=[None] * 3, title="", width=900, dark=False)
    assert "90 % interval" in figure.axes[0].get_legend_handles_labels()[1]


def test_an_error_between_0_and_1_is_no_percentage() -> None:
    errors, quantity = [EstimatePoint(1, 0.4, 0.3, 0.6)], mean_squared_error("days")
    figure = draw(errors, quantity=quantity, threshold=None, truth=[None], title="", width=900, dark=False)
    axes = figure.axes[0]
    assert axes.get_ylabel() == "days²"
    assert [label.get_text() for label in axes.get_yticklabels()][1] == "0.3"


def test_a_threshold_of_a_bias_is_drawn_on_both_sides_of_0() -> None:
    one, bias = [EstimatePoint(1, 0.4, 0.3, 0.6)], BIAS.measured_in("days")
    axes = draw(one, quantity=bias, threshold=2.0, truth=[None], title="", width=900, dark=False).axes[0]
    lines = [line for line in axes.get_lines() if line.get_label() == "threshold ± 2 days"]
    assert [line.get_ydata()[0] for line in lines] == [-2.0, 2.0]  # type: ignore[index]
    assert axes.get_ylim()[0] < -2 < 2 < axes.get_ylim()[1]


def test_a_mean_score_is_a_number_on_the_axis_as_it_is_everywhere() -> None:
    scores = [EstimatePoint(1, 0.8, 0.7, 0.9)]
    figure = draw(scores, quantity=MEAN_SCORE, threshold=None, truth=[None], title="", width=900, dark=False)
    assert not any("%" in label.get_text() for label in figure.axes[0].get_yticklabels())


def test_an_interval_without_an_end_reaches_the_edge() -> None:
    """Else the round would look as if it were known exactly."""
    errors = [EstimatePoint(1, 3.2, 2.8, float("inf")), EstimatePoint(2, 3.0, 2.5, 3.6)]
    quantity = mean_squared_error("days")
    axes = draw(errors, quantity=quantity, threshold=None, truth=[None, None], title="", width=900, dark=False).axes[0]
    (bars,) = (drawn for drawn in axes.collections if drawn.get_label() == "95 % interval")
    ends = [tuple(segment[:, 1]) for segment in bars.get_segments()]
    assert ends == [(2.8, pytest.approx(axes.get_ylim()[1])), (2.5, 3.6)]


def test_an_infinite_bound_does_not_spoil_the_figure() -> None:
    assert len(figure_bytes([EstimatePoint(1, 0.5, float("-inf"), 0.9), EstimatePoint(2, 0.5, 0.4, 0.9)])) > 10_000


@pytest.mark.parametrize(
    ("rounds", "room", "expected"),
    [
        ([7], 3, [7]),
        ([1, 2, 3], 3, [1, 2, 3]),
        (range(1, 21), 8, [5, 10, 15, 20]),
        ([1, 3, 7, 9, 11], 3, [1]),
        (range(1, 301), 12, [50, 100, 150, 200, 250, 300]),
    ],
)
def test_ticks_stand_at_round_numbers(rounds: list[int], room: int, expected: list[int]) -> None:
    assert _ticks(list(rounds), room) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [(timedelta(hours=1), "3\n02:00"), (timedelta(days=1), "3\n5 Sep"), (timedelta(days=200), "3\nOct 2027")],
)
def test_a_tick_says_as_much_of_the_date_as_is_needed(step: timedelta, expected: str) -> None:
    rounds = [EstimatePoint(i + 1, 0.9, 0.8, 1.0, at=START + i * step) for i in range(3)]
    assert _tick(rounds[2], rounds) == expected


def test_figures_can_be_drawn_in_threads() -> None:
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(figure_bytes(points(5)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("'accuracy.jpg'")):
        estimate_figure(points(1), tmp_path / "accuracy.jpg")
    with pytest.raises(InputError, match="got 1 for 2 points"):
        figure_bytes(points(2), truth=[0.9])
    with pytest.raises(InputError, match="finite"):
        figure_bytes(points(2), threshold=float("nan"))
    with pytest.raises(InputError, match="round 4"):
        EstimatePoint(4, 0.9, 0.95, 0.99)


def test_the_last_rounds_are_a_line_of_their_own() -> None:
    plain = points(20)
    rolling = [replace(point, rolling=point.value + 0.01) for point in plain]
    assert near(pixels(figure_bytes(plain)), LIGHT.rolling) == 0
    assert near(pixels(figure_bytes(rolling)), LIGHT.rolling) > 400
    assert near(pixels(figure_bytes(rolling, dark=True)), DARK.rolling) > 400
    assert near(pixels(figure_bytes(rolling[:1])), LIGHT.rolling) == 0, "one round says the same as its estimate"
