from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_commands import opmon as in_this_process
from tests.patience import LONGEST


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ONNX model of the digits and labelled inputs, and a tomography of both."""
    import skl2onnx
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    folder = tmp_path_factory.mktemp("robustness")
    images, targets = load_digits(return_X_y=True)
    learner = LogisticRegression(max_iter=200).fit(images[:1000], targets[:1000])
    converted = skl2onnx.to_onnx(learner, images[:1].astype(np.float32), options={"zipmap": False})
    (folder / "digits.onnx").write_bytes(converted.SerializeToString())
    table = pa.table({"pixels": images[1000:].astype(np.float32).tolist(), "truth": targets[1000:].astype(str)})
    pq.write_table(table, folder / "data.parquet")
    pq.write_table(table.slice(0, 9).set_column(1, "truth", pa.array(["cat"] * 9)), folder / "named.parquet")
    said = started(folder, *RUN, "-q", "zoom > 2", "--json")
    assert said.returncode == 0, said.stderr
    (folder / "said.json").write_text(said.stdout)
    return folder


RUN = (
    "run", "data.parquet", "--model", "digits.onnx", "--label", "truth", "--kind", "image", "-p", "zoom",
    "-p", "brightness", "-p", "gaussian-noise", "-n", "300", "--half-width", "0.05",
)  # fmt: skip


def started(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opmon", "robustness", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )


def opmon(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with contextlib.chdir(folder):
        code, out, err = in_this_process("robustness", *arguments)
    return subprocess.CompletedProcess(arguments, code, out, err)


def test_run_tells_and_writes(place: Path) -> None:
    said = json.loads((place / "said.json").read_text())
    assert said["tests"] == 216
    assert said["inputs"] == 300
    assert 0.85 < said["unperturbed"] <= 1
    assert said["queries"]["q1"]["value"] < said["unperturbed"]
    assert (place / "robustness" / "robustness.html").is_file()
    assert not (place / "robustness" / "checkpoint.npz").exists()


def test_query_asks_without_running(place: Path) -> None:
    said = opmon(place, "query", "zoom > 2 or (brightness == 5 and gaussian_noise == 1)", "--json")
    answer = json.loads(said.stdout)
    assert answer["low"] <= answer["value"] <= answer["high"]
    assert answer["measured"] + answer["predicted"] == 3 * 36 + 3
    words = opmon(place, "query", "q5").stdout
    assert "measured" in words
    assert "predicted" in words


def test_broken_query_marks_its_place(place: Path) -> None:
    said = started(place, "query", "zoom > 2 or bright == 5")
    assert said.returncode == 2
    lines = said.stderr.splitlines()
    assert lines[2].index("^") == lines[1].index("bright")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("query", "zoom > 1", "--from", "nowhere"), "no tomography in nowhere"),
        ((*RUN[:2], "--model", "digits.onnx"), "say what is perturbed"),
        ((*RUN, "-p", "fog"), "no such perturbation"),
        ((*RUN, "-p", "zoom"), "stands twice"),
        ((*RUN, "-q", "zom > 1"), "did you mean 'zoom'"),
        ((*RUN, "--label", "nope"), "no column 'nope'"),
        ((*RUN, "--half-width", "0.9"), "half_width"),
        (("run", "named.parquet", *RUN[2:]), "labels are none of the model's classes: 'cat'"),
    ],
    ids=range(8),
)
def test_what_is_wrong_is_said_in_words(place: Path, arguments: tuple[str, ...], words: str) -> None:
    said = opmon(place, *arguments)
    assert said.returncode == 2
    assert words in said.stderr
    assert "Traceback" not in said.stderr


def test_compare(place: Path) -> None:
    said = opmon(place, "compare", "robustness", "robustness", "-q", "Q4")
    lines = said.stdout.splitlines()
    assert lines[0] == "on the same 300 inputs, one by one"
    assert lines[1].startswith("all: ")
    assert "may be chance" in lines[1]


def test_encoded_pictures_need_no_configuration(place: Path, tmp_path: Path) -> None:
    import io

    from PIL import Image

    cells = []
    table = pq.read_table(place / "data.parquet").slice(0, 60)
    for pixels in table["pixels"].to_pylist():
        coded = io.BytesIO()
        Image.fromarray(np.rint(np.reshape(pixels, (8, 8)) * 15.9).astype(np.uint8)).save(coded, "PNG")
        cells.append(coded.getvalue())
    pq.write_table(pa.table({"picture": pa.array(cells, pa.binary()), "truth": table["truth"]}), tmp_path / "p.parquet")
    arguments = ("--label", "truth", "--kind", "image", "-p", "zoom", "-o", "out", "--json")
    said = opmon(tmp_path, "run", "p.parquet", "--model", str(place / "digits.onnx"), *arguments)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["tests"] == 6  # one perturbation has no pairs, and a report all the same


def test_numbers_are_no_texts(place: Path) -> None:
    said = opmon(place, "run", "data.parquet", "--model", "digits.onnx", "--kind", "text", "-p", "synonym", "-n", "20")
    assert said.returncode == 2
    assert "the model takes numbers" in said.stderr
