"""No medium breaks a line between a number and its unit, and nothing else of a text is changed."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from opmon.binding import BLANK, bound, bound_page
from opmon.cli._terminal import Terminal
from opmon.quantities import ACCURACY, BIAS, MAE, MAPE, Quantity
from opmon.web.templating import rendered

TORN = re.compile(r"\d\n *(?:%|points?|days)|±\n")
SENTENCE = "The accuracy is 83 % of all, ± 2 points, after 3.25 days or 1,000 inputs; the bias is ± 0.5 frobs."


@pytest.mark.parametrize(
    "text",
    [
        ACCURACY.text(0.834),
        ACCURACY.difference(0.02),
        MAPE.text(7.0),
        MAPE.difference(1.0),
        MAE.measured_in("days").text(3.0),
        MAE.measured_in("kWh").text(12.0),
        MAE.measured_in("€").text(12.0),
        MAE.measured_in("km/h").text(12.0),
        MAE.measured_in("frobs").text(3.25),
        Quantity("mean squared error", "days²").text(3.0),
        BIAS.measured_in("days").threshold(2.0),
    ],
)
def test_what_quantities_write_is_one_word(text: str) -> None:
    assert " " in text
    assert " " not in bound(text)
    assert " " not in bound_page(text)


@pytest.mark.parametrize(
    "text", ["in 3 of 4 rounds", "version 2 is better", "12 March 2026", "12 Mar 2026, 04:00 UTC", "0.5 to 0.7"]
)
def test_other_numbers_may_end_a_line(text: str) -> None:
    assert bound(text) == text


@given(st.text("<>/ab1.% ±&;\"'", max_size=60))
def test_only_blanks_are_changed(text: str) -> None:
    assert bound(text).replace(BLANK, " ") == text
    assert bound_page(text).replace(BLANK, " ") == text
    assert bound(bound(text)) == bound(text)


def test_tags_and_what_is_no_running_text_stay_as_they_are() -> None:
    page = '<a title="5 %"><script>x = "5 %"</script><pre>5 % <b>6 %</b></pre><b>7</b> %'
    assert bound_page(page) == page[:-2] + BLANK + "%"


@pytest.mark.parametrize("width", range(12, 60))
def test_a_terminal_breaks_no_line_there(width: int) -> None:
    out = Terminal(file=io.StringIO(), width=width, highlight=False)
    out.print(f"[bold]{SENTENCE}[/bold]")
    out.print(Text(SENTENCE))
    table = Table(show_header=False, box=None)
    table.add_row(SENTENCE, Text("84.5 %"))
    out.print(table)
    assert isinstance(out.file, io.StringIO)
    told = out.file.getvalue()
    assert not TORN.search(re.sub(r" *\n", "\n", told)), told
    assert " ".join(told.split()).count(SENTENCE) >= 2, "plain blanks, whoever copies it"


def test_commands_print_to_such_a_terminal() -> None:
    from opmon.cli.common import console

    assert isinstance(console(), Terminal)


def test_pages_are_bound() -> None:
    assert f"83{BLANK}%" in rendered("refused.html", {"code": 400, "words": SENTENCE, "person": None})
