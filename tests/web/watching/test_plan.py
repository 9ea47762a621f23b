"""Planning labels on a page and through the API."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest

Clients = Callable[..., httpx.Client]
API = "/api/v1/monitors"


def test_a_narrower_interval_needs_more_labels(client_of: Clients) -> None:
    olga = client_of(name="olga")
    told = [olga.get(f"{API}/sinking/plan", params={"half_width": width}).json() for width in (0.08, 0.04, 0.02)]
    budgets = [each["budget"] for each in told]
    assert budgets == sorted(budgets)
    assert all(each["half_width"] <= width for each, width in zip(told, (0.08, 0.04, 0.02), strict=True))
    curve = told[1]["curve"]
    assert [each["half_width"] for each in curve] == sorted((each["half_width"] for each in curve), reverse=True)
    nearest = min(curve, key=lambda each: abs(each["budget"] - told[1]["budget"]))
    assert nearest["half_width"] == pytest.approx(told[1]["half_width"], rel=0.15)


def test_the_page_speaks_in_points(client_of: Clients) -> None:
    olga = client_of(name="olga")
    asked = {"half_width": "4", "inputs": "20000", "expected": "95", "aim": "0"}
    page = olga.get("/monitors/sinking/plan", params=asked).text
    same = {"half_width": 0.04, "inputs": 20000, "expected": 0.95, "aim": 0}
    told = olga.get(f"{API}/sinking/plan", params=same).json()
    assert f'<span class="big">{told["budget"]:,}</span>' in page
    assert "Expected accuracy, %" in page
    assert "± points" in page
    assert 'aria-label="The more labels, the narrower the interval' in page


@pytest.mark.parametrize("written", ["20,000", "20 000", "20.000", "20'000", "20000"])
def test_thousands_are_read_as_they_are_written(client_of: Clients, written: str) -> None:
    olga = client_of(name="olga")
    page = olga.get("/monitors/sinking/plan", params={"inputs": written}).text
    assert page.partition('id="result"')[2] == olga.get(
        "/monitors/sinking/plan", params={"inputs": "20000"}
    ).text.partition('id="result"')[2]  # fmt: skip


def test_a_regression_is_planned_in_its_unit(client_of: Clients) -> None:
    page = client_of(name="olga").get("/monitors/prices/plan").text
    assert "± €²" in page
    assert re.search(r'placeholder="[0-9.,]+ €²"', page), "the width that is planned for"
    assert "expected accuracy" not in page.lower()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"half_width": "wide"}, "the width must be a number"),
        ({"half_width": "-3"}, "above 0"),
        ({"inputs": "1.5"}, "a whole number"),
        ({"half_width": "nan"}, "a number above 0"),
        ({"inputs": "inf"}, "a whole number"),
        ({"expected": "300"}, "lies in [0, 1]"),
        ({"aim": "7"}, "aim"),
    ],
)
def test_what_cannot_be_is_told_on_the_page(client_of: Clients, asked: dict[str, str], words: str) -> None:
    answer = client_of(name="olga").get("/monitors/sinking/plan", params=asked)
    assert answer.status_code == 200
    assert words in answer.text


def test_a_monitor_without_rounds_needs_to_be_told_of_inputs(client_of: Clients) -> None:
    olga = client_of(name="olga")
    assert "say how many inputs a round has" in olga.get("/monitors/fresh/plan").text
    assert olga.get(f"{API}/fresh/plan").status_code == 422
    assert olga.get(f"{API}/fresh/plan", params={"inputs": 5000}).json()["budget"] > 100
