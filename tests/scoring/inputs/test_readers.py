"""Pictures, text and functions of the user as tensors; what cannot be read costs its own row only."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from opmon.errors import InputError, ModelError
from opmon.scoring.inputs.images import ImageInput
from opmon.scoring.inputs.readers import FunctionInput
from opmon.scoring.inputs.texts import TextInput
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import Tensor
from opmon.types import Batch

FIRST, LAST = Tensor("x", "float", (None, 3, 8, 6)), Tensor("x", "float", (None, 8, 6, 3))


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (4, 8, 6, 3)).astype(np.uint8)


def encoded(array: np.ndarray, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind)
    return out.getvalue()


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_bytes_paths_and_arrays_are_the_same_picture(pixels, tmp_path) -> None:
    for i, array in enumerate(pixels):
        (tmp_path / f"{i}.png").write_bytes(encoded(array))
    columns = {
        "bytes": [encoded(array) for array in pixels],
        "path": [f"{i}.png" for i in range(4)],
        "both": [{"bytes": encoded(array), "path": None} for array in pixels],
        "base64": [base64.b64encode(encoded(array)).decode() for array in pixels],
        "data": [f"data:image/png;base64,{base64.b64encode(encoded(array)).decode()}" for array in pixels],
        "array": [array.ravel().tolist() for array in pixels],
        "nested": pixels.tolist(),
    }
    for name, cells in columns.items():
        plan = ImageInput(
            name, folder=None if name == "base64" else tmp_path, mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3)
        )
        fed = plan.reader([FIRST]).tensors(batch(**{name: cells}))
        expected = (pixels / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.25, 0.3]
        assert fed.tensors["x"] == pytest.approx(expected.transpose(0, 3, 1, 2), abs=1e-5), name
        assert fed.tensors["x"].dtype == np.float32


def test_the_layout_is_the_models(pixels) -> None:
    cells = batch(p=[encoded(array) for array in pixels])
    assert ImageInput("p").reader([LAST]).tensors(cells).tensors["x"] == pytest.approx(pixels / 255, abs=1e-6)
    raw = ImageInput("p").reader([Tensor("x", "uint8", (None, 8, 6, 3))]).tensors(cells).tensors["x"]
    assert (raw == pixels).all()
    grey = ImageInput("p").reader([Tensor("x", "float", (None, 1, 4, 4))]).tensors(cells).tensors["x"]
    assert grey.shape == (4, 1, 4, 4)
    flat = ImageInput("p", size=(8, 6)).reader([Tensor("x", "float", (None, 144))]).tensors(cells).tensors["x"]
    assert flat == pytest.approx(pixels.reshape(4, -1) / 255, abs=1e-6)


def test_a_crop_keeps_the_middle(pixels) -> None:
    wide = np.zeros((8, 24, 3), np.uint8)
    wide[:, 8:16] = 255
    target = Tensor("x", "float", (None, 3, 8, 8))
    cut = ImageInput("p", crop=True).reader([target]).tensors(batch(p=[encoded(wide)])).tensors["x"]
    assert cut.min() == 1
    stretched = ImageInput("p").reader([target]).tensors(batch(p=[encoded(wide)])).tensors["x"]
    assert stretched.mean() == pytest.approx(1 / 3, abs=0.05)


def test_what_is_no_picture_costs_its_row_only(pixels, tmp_path) -> None:
    whole = encoded(pixels[0])
    (tmp_path / "outside.png").write_bytes(whole)
    (tmp_path / "in").mkdir()
    cells = [whole, whole[: len(whole) // 2], b"", b"not a picture", None]
    fed = ImageInput("p").reader([FIRST]).tensors(batch(p=cells))
    assert fed.rows.tolist() == [0]
    assert sorted(fed.rejected) == [1, 2, 3, 4]
    paths = ["../outside.png", str(tmp_path / "outside.png"), "nothing.png"]
    fed = ImageInput("p", folder=tmp_path / "in").reader([FIRST]).tensors(batch(p=paths))
    assert [("outside of" in fed.rejected[row], "not there" in fed.rejected[row]) for row in range(3)] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    fed = ImageInput("p").reader([FIRST]).tensors(batch(p=[pixels[0].tolist(), pixels[0][:4].tolist()]))
    assert list(fed.rejected) == [1]


def test_a_bomb_is_not_decoded() -> None:
    bomb = encoded(np.zeros((7000, 7000), np.uint8))
    fed = ImageInput("p").reader([FIRST]).tensors(batch(p=[bomb]))
    assert "too many" in fed.rejected[0]


@pytest.mark.parametrize("shape", [(None, None, None, 3), (None, 50), (None, 2, 2, 2, 2)])
def test_a_model_that_leaves_the_size_open_asks_for_it(shape) -> None:
    with pytest.raises(ModelError, match="size"):
        ImageInput("p").reader([Tensor("x", "float", shape)])


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel({"[PAD]": 0, "good": 1, "bad": 2, "film": 3, "[UNK]": 4}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return path


def test_text_through_a_tokenizer_file(tokenizer) -> None:
    inputs = [Tensor("input_ids", "int64", (None, None)), Tensor("attention_mask", "int64", (None, None))]
    fed = TextInput("t", tokenizer, length=3).reader(inputs).tensors(batch(t=["good film", None, "bad", "a b c d"]))
    assert fed.tensors["input_ids"].tolist() == [[1, 3, 0], [2, 0, 0], [4, 4, 4]]
    assert fed.tensors["attention_mask"].tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert fed.rows.tolist() == [0, 2, 3]
    fixed = TextInput("t", tokenizer).reader([Tensor("ids", "int32", (None, 5))]).tensors(batch(t=["good"]))
    assert fixed.tensors["ids"].tolist() == [[1, 0, 0, 0, 0]]


IDS, MASK = Tensor("input_ids", "int64", (None, None)), Tensor("attention_mask", "int64", (None, None))
FIXED = [Tensor(item.name, item.kind, (None, 6)) for item in (IDS, MASK)]


def saved(folder: Path, words: dict[str, int], padding: dict[str, Any] | None, **files: Any) -> Path:
    """A tokenizer of words in ``folder``, with what it says of padding, and other files beside it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel(words, unk_token="good"))
    made.pre_tokenizer = Whitespace()
    if padding is not None:
        made.enable_padding(**padding)
    made.enable_truncation(4, direction="left")
    made.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "tokenizer.json"


WORDS = {"<s>": 0, "<pad>": 1, "</s>": 2, "good": 3, "film": 4}
LEFT = {"pad_id": 1, "pad_token": "<pad>", "direction": "left"}
PADDED: dict[str, tuple[dict[str, int], dict[str, Any] | None, dict[str, Any], list[int]]] = {
    "its own": (WORDS, {**LEFT, "length": 6}, {}, [1, 1, 1, 1, 3, 4]),
    "its own as a multiple": (WORDS, {**LEFT, "pad_to_multiple_of": 8}, {}, [1, 1, 1, 1, 3, 4]),
    "by its vocabulary": (WORDS, None, {}, [3, 4, 1, 1, 1, 1]),
    "by the files beside it": (
        WORDS,
        None,
        {"special_tokens_map": {"pad_token": {"content": "</s>"}}, "tokenizer_config": {"padding_side": "left"}},
        [2, 2, 2, 2, 3, 4],
    ),
    "by files that say nothing": (WORDS, None, {"tokenizer_config": ["pad_token"]}, [3, 4, 1, 1, 1, 1]),
    "by the library": ({"a": 0, "good": 3, "film": 4}, None, {}, [3, 4, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("case", PADDED)
def test_shorter_texts_are_filled_up_as_the_tokenizer_does(tmp_path: Path, case: str) -> None:
    words, padding, files, wanted = PADDED[case]
    path = saved(tmp_path, words, padding, **files)
    found = TextInput("t", path).reader(FIXED).tensors(batch(t=["good film"])).tensors
    assert found["input_ids"].tolist() == [wanted]
    assert found["attention_mask"].tolist() == [[int(number in (3, 4)) for number in wanted]]


def test_longer_texts_are_cut_on_the_side_that_the_tokenizer_cuts(tmp_path: Path) -> None:
    reader = TextInput("t", saved(tmp_path, WORDS, LEFT), length=2).reader([IDS, MASK])
    assert reader.tensors(batch(t=["film film good", "film"])).tensors["input_ids"].tolist() == [[4, 3], [1, 4]]


def test_texts_that_are_longer_than_the_tokenizer_fills_up_have_one_length(tmp_path: Path) -> None:
    reader = TextInput("t", saved(tmp_path, WORDS, {**LEFT, "length": 2}), length=9).reader([IDS, MASK])
    found = reader.tensors(batch(t=["good film good", "good"])).tensors
    assert found["input_ids"].tolist() == [[3, 4, 3], [1, 1, 3]]
    assert found["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]


def test_text_through_a_graph(tmp_path) -> None:
    nodes = [
        helper.make_node(
            "LabelEncoder", ["text"], ["ids"], domain="ai.onnx.ml", keys_strings=["good", "bad"], values_int64s=[1, 2]
        )
    ]
    graph = helper.make_graph(
        nodes,
        "tokenizer",
        [helper.make_tensor_value_info("text", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    path = tmp_path / "tokenizer.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), str(path))
    fed = TextInput("t", path).reader([Tensor("word", "int64", (None,))]).tensors(batch(t=["bad", None, "good"]))
    assert fed.tensors["word"].tolist() == [2, 1]
    with pytest.raises(ModelError, match="gives ids, and the model takes mask"):
        TextInput("t", path).reader([Tensor("ids", "int64", (None,)), Tensor("mask", "int64", (None,))])


def test_a_tokenizer_that_is_none(tmp_path) -> None:
    (tmp_path / "t.json").write_text("{}")
    inputs = [Tensor("input_ids", "int64", (None, None))]
    with pytest.raises(ModelError, match="no tokenizer that can be read"):
        TextInput("t", tmp_path / "t.json").reader(inputs)
    with pytest.raises(ModelError, match="there is no tokenizer"):
        TextInput("t", tmp_path / "u.json").reader(inputs)
    with pytest.raises(InputError, match=r"\.json or \.onnx"):
        TextInput("t", tmp_path / "t.model")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_features.py").write_text(
        "import numpy as np\n"
        "def lengths(batch):\n"
        "    words = batch.column(0).to_pylist()\n"
        "    odd = {'x': np.inf, 'y': np.nan}\n"
        "    return np.array([[len(w), w.count('a'), 1.0, odd.get(w[-1], 0)] for w in words])\n"
        "def wrong(batch):\n"
        "    return np.zeros((1, 4))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("own_features", None)
    return "own_features"


def test_a_function_of_the_user(module) -> None:
    reader = FunctionInput(f"{module}:lengths").reader([Tensor("x", "float", (None, 4))])
    fed = reader.tensors(batch(word=["banana", None, "fox", "cat", "toy"]))
    np.testing.assert_array_equal(fed.tensors["x"], [[6, 3, 1, 0], [3, 1, 1, 0], [3, 0, 1, np.nan]])
    assert fed.rows.tolist() == [0, 3, 4], "NaN is for the model to answer or not"
    assert "infinite" in fed.rejected[2]
    assert "TypeError" in fed.rejected[1]
    with pytest.raises(ModelError, match="one row for each of the 2 inputs"):
        FunctionInput(f"{module}:wrong").reader([Tensor("x", "float", (None, 4))]).tensors(batch(word=["a", "b"]))


@pytest.mark.parametrize("name", ["nothing", "own_features:", "no.such.module:f", "math:pi"])
def test_a_function_that_is_not_there(name) -> None:
    with pytest.raises(InputError, match=r"function|imported"):
        FunctionInput(name).reader([Tensor("x", "float", (None, 4))])


def test_a_model_of_pictures_is_scored(graph, pixels) -> None:
    weights = {"w": np.random.default_rng(0).normal(size=(144, 3)).astype(np.float32)}
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    path = graph(nodes, [("x", TensorProto.FLOAT, ["n", 3, 8, 6])], [("y", TensorProto.FLOAT, ["n", 3])], weights)
    scorer = Scorer.open(path, "classification", device="cpu", reading=ImageInput("p"))
    rows = batch(p=[encoded(pixels[0]), b"broken", encoded(pixels[1], "BMP")])
    (scored,) = scorer.score([Batch(0, 10, rows)])
    assert scored.rows.tolist() == [10, 12]
    assert list(scored.rejected) == [11]
    expected = (pixels[:2] / 255).transpose(0, 3, 1, 2).reshape(2, -1) @ numpy_helper.to_array(
        onnx.load(str(path)).graph.initializer[0]
    )
    assert scored.predictions.tolist() == expected.argmax(1).astype(str).tolist()


def test_the_signatures_columns_are_the_models_in_their_order(dense) -> None:
    scorer = Scorer.open(dense(), "classification", device="cpu", signature=("d", "c", "b", "a"))
    rows = batch(a=[0.0], b=[0.0], c=[9.0], d=[1.0], other=["x"])
    assert next(iter(scorer.score([Batch(0, 0, rows)]))).predictions.tolist() == ["1"]
