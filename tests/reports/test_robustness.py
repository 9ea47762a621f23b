from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.reports.robustness import robustness_metrics, robustness_report
from opmon.reports.robustness_figures import curve_figure, gallery_figure, heat_figure, voxel_figure
from opmon.reports.robustness_files import read_tomography, write_tomography
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.result import Tomography
from opmon.robustness.space import Space


def made(
    names: tuple[str, ...] = ("zoom", "blur", "<b>noise</b>"), ordered: bool = False, lower: float = 0
) -> Tomography:
    space = Space(names, ordered=ordered)
    tests = space.tests()
    share = np.clip(0.95 * np.exp(-0.08 * tests.severity_sum) - lower, 0, 1)
    error = np.full(len(tests), 0.01)
    return Tomography(
        space=space,
        tests=tests,
        share=share,
        error=error,
        shared=error / 2,
        low=np.clip(share - 0.02, 0, 1),
        high=np.clip(share + 0.02, 0, 1),
        seen=np.where(tests.order <= 2, 400, 0),
        inputs=1000,
        effective_inputs=1000.0,
        level=0.9,
        quality=tests.severity_sum / 20,
        quality_error=error,
        facts={"relation": "as labelled", "independence": {"p_value": 0.01, "sizes_suffice": True}},
    )


def test_kept_and_read_back(tmp_path: Path) -> None:
    result = made(ordered=True)
    write_tomography(result, tmp_path)
    again = read_tomography(tmp_path)
    assert again.space == result.space
    assert again.tests.chains() == result.tests.chains()
    for question in ("Q1", "all", "quality < 0.3 and order > 1"):
        assert again.ask(question) == result.ask(question)


@pytest.mark.parametrize("broken", ["nothing", "half", "old", "text", "columns"])
def test_what_cannot_be_read_is_said(tmp_path: Path, broken: str) -> None:
    if broken != "nothing":
        write_tomography(made(), tmp_path)
        facts = tmp_path / "robustness.json"
        content = json.loads(facts.read_text())
        if broken == "half":
            (tmp_path / "robustness.parquet").write_bytes(b"PAR1")
        elif broken == "old":
            facts.write_text(json.dumps({**content, "format": 0}))
        elif broken == "text":
            facts.write_text("{")
        else:
            facts.write_text(json.dumps({key: value for key, value in content.items() if key != "space"}))
    with pytest.raises(InputError, match="run"):
        read_tomography(tmp_path)


def test_report_has_everything(tmp_path: Path) -> None:
    robustness_report(made(), tmp_path, title="<script>alert(1)</script>", queries={"fog": "blur > 2"})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "robustness.html", "robustness.json", "robustness.parquet", "answers.json", "pairs.png", "voxels.png",
        "severity-sum.png",
    }  # fmt: skip
    page = (tmp_path / "robustness.html").read_text("utf-8")
    assert "<script>" not in page
    assert "<b>noise</b>" not in page
    assert "blur &gt; 2" in page
    assert json.loads((tmp_path / "answers.json").read_text())["fog"]["measured"] > 0


def test_metrics_have_every_saved_query() -> None:
    metrics = robustness_metrics(made(), {"fog": "blur > 2"})
    assert metrics["robustness/aggregate"] == pytest.approx(made().share.mean())
    assert metrics["robustness/query/fog.low"] < metrics["robustness/query/fog"] < metrics["robustness/query/fog.high"]
    assert metrics["robustness/worst"] == made().share.min()


def test_outcomes_are_kept_and_read_back(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((3, 5))
    outcomes = Outcomes.of([0, 1, 2], values, np.full((3, 5), 0.1), np.array(list("edcba")), np.arange(1.0, 6))
    write_tomography(replace(made(), outcomes=outcomes), tmp_path)
    again = read_tomography(tmp_path).outcomes
    assert again is not None
    assert again.same_inputs(outcomes)
    assert again.inputs.tolist() == list("abcde")
    assert again.values == pytest.approx(values[:, ::-1], abs=1e-3)
    (tmp_path / "robustness-outcomes.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="cannot be read"):
        read_tomography(tmp_path)
    write_tomography(made(), tmp_path)
    assert read_tomography(tmp_path).outcomes is None


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_heat_maps_of_any_number_of_pairs(count: int) -> None:
    space = tuple("abcdefg"[:count])
    result = made(space) if count < 5 else limited(space)
    assert heat_figure(result).startswith(b"\x89PNG")
    assert curve_figure(replace(result, quality=None)).startswith(b"\x89PNG")


def limited(names: tuple[str, ...]) -> Tomography:
    whole = made(names[:3])
    space = Space(names, max_order=2)
    tests = space.tests()
    n = len(tests)
    columns = {key: np.resize(getattr(whole, key), n) for key in ("share", "error", "shared", "low", "high", "seen")}
    return replace(whole, space=space, tests=tests, quality=None, quality_error=None, **columns)


def test_voxels_show_three() -> None:
    assert voxel_figure(made(), (2, 0, 1)).startswith(b"\x89PNG")
    with pytest.raises(InputError, match="three different"):
        voxel_figure(made(), (0, 0, 1))


def test_gallery() -> None:
    pictures = np.random.default_rng(0).random((3, 8, 8, 3), np.float32)
    assert gallery_figure([("$x_1 + zoom 5", 0.5, pictures), ("grey", 1.0, pictures[..., :1])]).startswith(b"\x89PNG")
    with pytest.raises(InputError):
        gallery_figure([])
