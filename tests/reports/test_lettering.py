"""Names of any script in pictures: written where a font can, and told apart by a number where none can."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from opmon.reports import lettering
from opmon.reports.lettering import families, font_file, told_apart, written
from opmon.reports.measure_figures import confusion_figure
from opmon.reports.pictures import picture_grid

NAMES = ("猫", "قطة", "😀 smile", "犬", "nan", "$x_1$ & y", "$\\frac$", "a long name of a class", "a long name of it")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with no font but matplotlib's."""
    monkeypatch.setattr(lettering, "_candidates", tuple)


@pytest.mark.usefixtures("alone")
def test_names_that_no_font_writes_have_numbers_and_a_key() -> None:
    told, key = told_apart(NAMES, 14)
    assert told[:2] == ["#1", "قطة"]
    assert told[3:7] == ["#4", "nan", "$x_1$ & y", "$\\frac$"]
    assert len(set(told)) == len(NAMES)
    assert key.startswith("#1 is 猫, #4 is 犬, #8 is a long name of a class")


@pytest.mark.usefixtures("alone")
def test_what_no_font_writes_is_spelt_by_its_code_points() -> None:
    assert written("in 円") == "in U+5186"
    assert written("ok\U000e0067") == "ok"


def test_a_font_of_the_machine_is_taken_where_it_writes_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    own = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    other = str(own / "STIXGeneral.ttf")
    sign = chr(min(lettering._signs_of(other) - lettering._signs_of(str(lettering._own()))))
    monkeypatch.setattr(lettering, "_candidates", lambda: (("STIXGeneral", other),))
    assert families([f"a {sign}"]) == ["DejaVu Sans", "STIXGeneral"]
    assert families(["plain"]) == ["DejaVu Sans"]
    assert font_file(f"{sign}{sign}") == Path(other)
    assert told_apart([sign], 14) == ([sign], "")


def test_a_confusion_matrix_takes_every_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = confusion_figure(np.eye(len(NAMES)) / len(NAMES), NAMES)
    assert figure.content.startswith(b"\x89PNG")


def test_captions_of_pictures_may_be_of_any_script(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture_grid([np.zeros((8, 8))] * len(NAMES), NAMES, tmp_path / "grid.png") == len(NAMES)
