"""Charts are drawn whatever the numbers are, and hold nothing that a page would run."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.quantities import ACCURACY, AUC, BIAS, MAE, Quantity, mean_squared_error
from opmon.types import Estimate
from opmon.web.charts import NARROW, WIDE, Mark, curve, sparkline, timeline, told, whiskers

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>'


def mark(number: int, value: float = 0.9, half: float = 0.05, **more: object) -> Mark:
    known = {"at": NOW + timedelta(days=number), "version": "1", "low": value - half, "high": value + half}
    return Mark(number, value=value, **{**known, **more})  # type: ignore[arg-type]


def numbers_in(svg: str) -> list[float]:
    """All coordinates of a chart."""
    found = " ".join(re.findall(r' (?:d|x|y|cx|cy)="([^"]*)"', svg))
    return [float(each) for each in re.findall(r"-?\d+\.?\d*", found)]


bounded = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(bounded, st.floats(0, math.inf), st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_timeline_stays_on_its_paper(rows: list[tuple[float, float, bool, bool]]) -> None:
    marks = [
        mark(k, value, half, alarm=alarm, provisional=provisional, version=str(k // 4))
        for k, (value, half, alarm, provisional) in enumerate(rows, 1)
    ]
    for size in (WIDE, NARROW):
        svg = str(timeline(marks, told(marks, MAE, None), quantity=MAE, line=None, size=size))
        ET.fromstring(svg)
        assert all(math.isfinite(each) and -30 <= each <= size.width + 30 for each in numbers_in(svg))
        assert len(re.findall(r"<title>", svg)) == len(rows)


def test_rounds_of_one_moment_lie_side_by_side() -> None:
    marks = [mark(number, at=NOW) for number in (1, 2, 3)]
    svg = str(timeline(marks, "", quantity=ACCURACY, line=0.95, size=WIDE))
    places = [float(each) for each in re.findall(r'data-x="([\d.]+)"', svg)]
    assert places == sorted(set(places))
    assert "threshold 95 %" in svg


@pytest.mark.parametrize("last", [0.735, 0.765])
def test_the_name_of_the_threshold_lies_over_no_point(last: float) -> None:
    marks = [mark(number, 0.7, 0.1) for number in range(1, 6)] + [mark(6, last, 0.09)]
    svg = str(timeline(marks, "", quantity=ACCURACY, line=0.75, size=WIDE))
    foot = float(re.findall(r'class="threshold-name" x="[\d.]+" y="([\d.]+)"', svg)[0])
    down = float(re.findall(r'<circle [^>]*cy="([\d.]+)"', svg)[-1])
    assert not foot - 14 < down < foot + 4


def test_bands_end_where_a_version_does() -> None:
    marks = [mark(number, version="1" if number < 4 else "2", rolling=0.9) for number in range(1, 8)]
    svg = str(timeline(marks, "", quantity=ACCURACY, line=None, size=WIDE))
    assert svg.count('class="band"') == 2
    assert svg.count('class="rolling"') == 2
    assert svg.count('class="version"') == 1


def test_what_is_told_of_a_timeline() -> None:
    marks = [mark(1, 0.95), mark(2, 0.8, alarm=True), mark(3, 0.9)]
    said = told(marks, ACCURACY, 0.85)
    assert said == (
        "Accuracy over 3 rounds, 02 March 2026 to 04 March 2026. "
        "The last one, round 3: 90.0 % [85.0 %, 95.0 %]. The lowest: 80.0 % in round 2. The threshold is 85 %. "
        "1 round with an alarm: 2."
    )
    assert "The highest: 3.00 in round 1." in told([mark(1, 3.0), mark(2, 2.0)], MAE, None)
    assert told([], ACCURACY, None) == "No round has an estimate yet."


def test_an_interval_of_few_labels_does_not_flatten_the_others() -> None:
    """It runs off the chart; what it is stands in words."""
    settled = [mark(k, 0.6, 0.2) for k in range(1, 9)]
    svg = str(timeline([*settled, mark(9, 1.0, 11.0, provisional=True)], "", quantity=MAE, line=1.5, size=WIDE))
    band = re.search(r'class="band" d="([^"]*)"', svg)
    assert band is not None
    heights = [float(each) for each in re.findall(r"[ ,](\d+\.?\d*)", band[1])]
    assert max(heights) - min(heights) > 0.1 * WIDE.height, "as much as the threshold leaves them"
    assert "Round 9: 1 [-10, 12], provisional" in svg


def test_what_labels_may_still_change_is_neither_the_last_nor_the_lowest() -> None:
    marks = [mark(1, 0.95), mark(2, 0.8), mark(3, 0.4, provisional=True), mark(4, 0.3, provisional=True)]
    said = told(marks, ACCURACY, None)
    assert "2 of them are provisional: labels still come." in said
    assert "The last final one, round 2: 80.0 % [75.0 %, 85.0 %]. The lowest: 80.0 % in round 2." in said
    assert "All are provisional: labels still come. The last one, round 4: 30.0 %" in told(marks[2:], ACCURACY, None)


def test_what_is_expected_is_no_estimate() -> None:
    marks = [mark(1), mark(2), mark(3, 0.85, expected=True), mark(4, 0.84, expected=True)]
    svg = str(timeline(marks, "", quantity=ACCURACY, line=None, size=WIDE))
    assert svg.count('class="point expected"') == svg.count('class="span expected"') == 2
    assert svg.count('class="band"') == 1
    assert "Round 3: expected accuracy before its labels, 85.0 %" in svg
    said = told(marks, ACCURACY, None)
    assert "Accuracy over 2 rounds" in said
    assert said.endswith("Round 4 waits for labels: its expected accuracy is 84.0 % [79.0 %, 89.0 %].")
    assert told(marks[2:3], ACCURACY, None).startswith("No round has an estimate yet. Round 3 waits for labels")


@pytest.mark.parametrize("count", [1, 2, 24])
def test_a_sparkline_of_few_and_many(count: int) -> None:
    points = [mark(number, 0.9, math.inf if number == 1 else 0.02) for number in range(count)]
    svg = str(sparkline(points, "so it went", quantity=ACCURACY, line=0.8))
    ET.fromstring(svg)
    assert 'aria-label="so it went"' in svg
    assert all(math.isfinite(each) for each in numbers_in(svg))
    assert str(sparkline([], "", quantity=ACCURACY)) == ""


def test_text_in_charts_is_escaped() -> None:
    marks = [mark(1, version=HOSTILE, href=HOSTILE), mark(2, version="2")]
    estimate = Estimate(0.9, 0.8, 0.95, 100, 1000, 1.0, "srs")
    drawn = (
        timeline(marks, HOSTILE, quantity=ACCURACY, line=None, size=WIDE),
        sparkline(marks, HOSTILE, quantity=ACCURACY),
        whiskers([(HOSTILE, estimate)], HOSTILE, quantity=ACCURACY, width=960),
        curve(
            [("estimate", [(1, 2), (3, 1)])],
            HOSTILE,
            chosen=(1, 2),
            across=str,
            down=lambda ticks: [HOSTILE] * len(ticks),
            size=WIDE,
        ),
    )
    for svg in map(str, drawn):
        ET.fromstring(svg)
        assert "<script" not in svg
        assert "style=" not in svg, "the pages' policy allows none"


def beside(svg: str) -> list[str]:
    """What stands beside the axis."""
    return re.findall(r'<text class="tick"[^>]*>([^<]*)', svg)


@pytest.mark.parametrize(
    ("quantity", "value", "half"),
    [(ACCURACY, 0.912, 0.00002), (ACCURACY, 0.9992, 0.0001), (AUC, 0.9999, 0.00004), (MAE, 12345.2, 0.3)],
)
def test_no_two_lines_of_the_grid_have_the_same_number(quantity: Quantity, value: float, half: float) -> None:
    marks = [mark(1, value, half), mark(2, value, half)]
    found = beside(str(timeline(marks, "", quantity=quantity, line=None, size=WIDE)))
    assert len(found) > 1
    assert len(set(found)) == len(found)


def test_long_numbers_beside_an_axis_have_room() -> None:
    marks = [mark(1, 9_000_000.0, 500_000.0), mark(2, 8_500_000.0, 500_000.0)]
    for size in (WIDE, NARROW):
        svg = str(timeline(marks, "", quantity=mean_squared_error("days"), line=None, size=size))
        places = [float(each) for each in re.findall(r'class="tick" x="([\d.]+)"', svg)]
        assert min(places) >= 7 * max(map(len, beside(svg)))


def test_rounds_of_one_day_are_told_apart_by_the_time() -> None:
    hourly = [mark(number, at=NOW + timedelta(hours=number)) for number in range(20)]
    dates = re.findall(r'<text class="date[^>]*data-form="time"[^>]*>([^<]*)', timeline(
        hourly, "", quantity=ACCURACY, line=None, size=WIDE
    ))  # fmt: skip
    assert dates[0] == "01 Mar, 00:00"
    assert len(set(dates)) == len(dates) > 2


def test_a_threshold_of_a_bias_is_drawn_on_both_sides_of_0() -> None:
    bias, marks = BIAS.measured_in("days"), [mark(1, -1.0, 0.5), mark(2, 0.5, 0.5)]
    svg = str(timeline(marks, "", quantity=bias, line=2.0, size=WIDE))
    assert re.findall(r'class="threshold-name"[^>]*>([^<]*)', svg) == ["threshold -2 days", "threshold 2 days"]
    assert "The threshold is ± 2 days." in told(marks, bias, 2.0)
    small = str(sparkline(marks, "", quantity=bias, line=2.0))
    heights = [float(each) for each in re.findall(r'class="threshold" d="M0 ([\d.]+)H', small)]
    assert len(heights) == 2
    assert all(0 <= each <= 28 for each in heights), "both lie on the paper"


def test_the_worst_bias_is_the_one_farthest_from_zero() -> None:
    marks = [mark(1, -5.0, 0.5), mark(2, 2.0, 0.5)]
    assert "The farthest from 0: -5.0 days in round 1." in told(marks, BIAS.measured_in("days"), None)


def test_names_keep_their_capitals_and_thresholds_all_of_their_digits() -> None:
    said = told([mark(1)], AUC, None)
    assert said.startswith("AUC over 1 round")
    svg = str(timeline([mark(1), mark(2)], "", quantity=ACCURACY, line=0.9975, size=WIDE))
    assert "threshold 99.75 %" in svg
    assert "The threshold is 99.75 %." in told([mark(1)], ACCURACY, 0.9975)
