from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.errors import ModelError
from opmon.scoring.inputs.columns import REFUSED, Missing
from opmon.scoring.inputs.tensors import plan_inputs
from opmon.scoring.session import Tensor

VECTOR = Tensor("x", "float", (None, 4))
IMAGE = Tensor("x", "float", (None, 1, 2, 2))


def fed(inputs, columns, **options):
    batch = pa.record_batch(columns)
    return plan_inputs(inputs, batch, **options).tensors(batch)


def test_inputs_take_the_only_column_of_lists() -> None:
    found = fed([VECTOR], {"id": ["a"], "pixels": [[1, 2, 3, 4]]})
    assert found.tensors["x"].dtype == np.float32
    assert found.tensors["x"].tolist() == [[1, 2, 3, 4]]


def test_inputs_take_a_column_of_the_inputs_name_first() -> None:
    assert fed([VECTOR], {"x": [[1, 2, 3, 4]], "other": [[1]]}).tensors["x"].shape == (1, 4)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": [1], "b": [2]}, {}, "not clear which columns"),
        ({"a": [[1]], "b": [[2]]}, {}, "not clear which columns"),
        ({"pixels": [[1]]}, {"column": "pixel"}, "Did you mean 'pixels'"),
        ({"a": [1], "b": [2]}, {"features": ["a", "b"]}, "features names 2 columns"),
        ({"a": ["t"]}, {"column": "a"}, "must be a list of numbers"),
        ({"a": [["t"]]}, {"column": "a"}, "must be a list of numbers"),
    ],
)
def test_inputs_that_do_not_fit_are_told(columns, options, message) -> None:
    with pytest.raises(ModelError, match=message):
        fed([VECTOR], columns, **options)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float64()),
        pa.large_list(pa.int8()),
        pa.list_(pa.uint8(), 4),
        pa.list_(pa.list_(pa.float32())),
        pa.list_(pa.list_(pa.list_(pa.int64()), 2)),
        pa.list_(pa.bool_()),
    ],
    ids=str,
)
def test_inputs_lists_of_every_kind_fill_the_tensor(kind) -> None:
    values = np.array([[1, 0, 1, 1], [0, 1, 0, 1]])
    nesting = str(kind).count("list<")
    shaped = {1: values, 2: values.reshape(2, 2, 2), 3: values.reshape(2, 1, 2, 2)}[nesting].tolist()
    if pa.types.is_boolean(kind.value_type):
        shaped = values.astype(bool).tolist()
    column = pa.array([shaped[1], *shaped], kind)[1:]  # a slice: offsets do not begin at 0
    assert fed([IMAGE], {"x": column}).tensors["x"].tolist() == values.reshape(2, 1, 2, 2).tolist()


def test_inputs_contiguous_lists_of_the_models_kind_are_not_copied() -> None:
    values = pa.array(np.arange(8, dtype=np.float32))
    found = fed([VECTOR], {"x": pa.FixedSizeListArray.from_arrays(values, 4)})
    assert np.shares_memory(found.tensors["x"], values.to_numpy())


def test_inputs_ragged_lists_are_set_aside() -> None:
    rows = [[[1, 2], [3, 4]], [[1], [2, 3, 4]], [[1, 2], [3]], None, [], [[], [1, 2, 3, 4]], [[1, None], [3, 4]]]
    found = fed([IMAGE], {"x": pa.array(rows, pa.list_(pa.list_(pa.int64())))})
    assert found.rows.tolist() == [0, 6]
    assert sorted(found.rejected) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(found.tensors["x"], [[[[1, 2], [3, 4]]], [[[1, np.nan], [3, 4]]]])


@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=2, max_size=5)),
        min_size=1,
        max_size=8,
    )
)
def test_inputs_good_rows_are_those_a_plain_loop_finds(rows) -> None:
    columns = {"x": pa.array(rows, pa.list_(pa.float32()))}
    read = [None if row is None else np.array(row, float) for row in rows]
    for missing in (Missing(), REFUSED):
        found = fed([VECTOR], columns, missing=missing)
        good = [
            i
            for i, row in enumerate(read)
            if row is not None
            and len(row) == 4
            and not np.isinf(row).any()
            and not (np.isnan(row).any() if missing.refuse else np.isnan(row).all())
        ]
        assert found.rows.tolist() == good
        assert sorted([*found.rejected, *good]) == list(range(len(rows)))
        np.testing.assert_array_equal(found.tensors["x"], np.array([read[i] for i in good], np.float32).reshape(-1, 4))


def test_inputs_unknown_size_comes_from_the_first_row() -> None:
    found = fed([Tensor("x", "float", (None, None))], {"x": [None, [1, 2, 3], [1, 2], [4, 5, 6]]})
    assert found.rows.tolist() == [1, 3]
    with pytest.raises(ModelError, match="do not say its shape"):
        fed([Tensor("x", "float", (None, None, None))], {"x": [[1, 2, 3]]})


def test_inputs_features_are_stacked_in_their_order() -> None:
    columns = {"c": [True, False], "a": [1, 2], "b": pa.array([0.5, 1.5], pa.float16()), "d": ["7", " 8.5"]}
    found = fed([VECTOR], columns, features=["a", "b", "c", "d"])
    assert found.tensors["x"].tolist() == [[1, 0.5, 1, 7], [2, 1.5, 0, 8.5]]


def test_inputs_features_with_bad_values_are_set_aside_with_the_reason() -> None:
    columns = {
        "a": [1.0, None, float("inf"), 1, 1, 1e300],
        "b": ["1", "2", "3", "four", None, "6"],
        "c": [0] * 6,
        "d": pa.array(["1"] * 6).dictionary_encode(),
    }
    found = fed([VECTOR], columns, features=list("abcd"), missing=REFUSED)
    assert found.rows.tolist() == [0]
    assert found.rejected[1] == "column 'a' is empty"
    assert found.rejected[3] == "column 'b' is not a number: 'four'"
    assert found.rejected[4] == "column 'b' is empty"
    assert "not finite" in found.rejected[2]
    assert "not finite" in found.rejected[5]


HOLES = {"a": [1, None, None], "b": [0.5, float("nan"), None], "c": ["1", " ", None], "d": [1, 2, None]}


def test_inputs_missing_numbers_reach_the_model_as_nan_and_empty_rows_do_not() -> None:
    found = fed([VECTOR], HOLES, features=list("abcd"))
    nan = np.nan
    np.testing.assert_array_equal(found.tensors["x"], np.array([[1, 0.5, 1, 1], [nan, nan, nan, 2]], np.float32))
    assert found.rejected == {2: "the input is empty: no value in a, b, c, d"}
    assert found.missing == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert [found.gap(place) for place in (0, 1)] == [None, "a"]
    found = fed([VECTOR], {"x": [[1, None, 3, 4], [nan, None, nan, nan]]})
    assert np.isnan(found.tensors["x"][0, 1])
    assert (found.rejected, found.gap(0)) == ({1: "the input is empty: column 'x' has no value"}, "x")


def test_inputs_missing_numbers_may_be_filled_or_refused() -> None:
    found = fed([VECTOR], HOLES, features=list("abcd"), missing=Missing(numbers=-1))
    assert found.tensors["x"].tolist() == [[1, 0.5, 1, 1], [-1, -1, -1, 2]]
    found = fed([VECTOR], HOLES, features=list("abcd"), missing=REFUSED)
    assert found.rows.tolist() == [0]
    assert found.rejected[1] == "column 'a' is empty"


def test_inputs_whole_numbers_cannot_be_nan() -> None:
    count = Tensor("count", "int64", (None, 2))
    columns = {"a": [1, None, 3], "b": [1.0, 2.0, float("nan")]}
    found = fed([count], columns, features=["a", "b"])
    assert found.tensors["count"].tolist() == [[1, 1]]
    assert found.rejected[1].startswith("column 'a' is empty, and the model takes int64 there: inputs.missing.numbers")
    found = fed([count], columns, features=["a", "b"], missing=Missing(numbers=0))
    assert found.tensors["count"].tolist() == [[1, 1], [0, 2], [3, 0]]


def test_inputs_missing_text_is_empty_text() -> None:
    inputs = [Tensor("town", "string", (None, 1)), Tensor("age", "float", (None, 1))]
    columns = {"town": ["x", None, None], "age": [1.0, 2.0, None]}
    assert fed(inputs, columns).tensors["town"].tolist() == [["x"], [""]]
    assert fed(inputs, columns, missing=Missing(text="?")).tensors["town"].tolist() == [["x"], ["?"]]
    assert fed(inputs, columns, missing=REFUSED).rows.tolist() == [0]


def test_inputs_of_several_names_take_their_columns() -> None:
    inputs = [
        Tensor("age", "float", (None, 1)),
        Tensor("town", "string", (None, 1)),
        Tensor("count", "int64", (None,)),
        Tensor("pixels", "uint8", (None, 2, 2)),
    ]
    columns = {
        "pixels": [[0, 1, 2, 255], [0, 0, 0, 256], [1, 1, 1, 1]],
        "count": [1.0, 2.0, 2.5],
        "town": ["x", "y", "z"],
        "age": [1, 2, 3],
        "id": [1, 2, 3],
    }
    found = fed(inputs, columns)
    assert found.rows.tolist() == [0]
    assert "no uint8" in found.rejected[1]
    assert "no int64" in found.rejected[2]
    assert {name: (values.dtype.kind, values.shape) for name, values in found.tensors.items()} == {
        "age": ("f", (1, 1)),
        "town": ("O", (1, 1)),
        "count": ("i", (1,)),
        "pixels": ("u", (1, 2, 2)),
    }


def test_inputs_of_several_names_must_be_there() -> None:
    inputs = [Tensor("age", "float", (None, 1)), Tensor("town", "string", (None, 1))]
    with pytest.raises(ModelError, match="no column 'town'"):
        fed(inputs, {"age": [1]})
    with pytest.raises(ModelError, match="each takes the column of its name"):
        fed(inputs, {"age": [1], "town": ["x"]}, features=["age"])
    with pytest.raises(ModelError, match="name one column for each"):
        fed(inputs, {"town": [1], "x": ["x"]}, features=["town", "x"])  # the model's town is another place


def test_inputs_of_several_names_may_be_called_otherwise_in_the_log() -> None:
    inputs = [Tensor("age", "float", (None, 1)), Tensor("town", "string", (None, 1))]
    for columns in ({"Age": [7], "Town": ["x"]}, {"years": [7], "town": ["x"]}):
        found = fed(inputs, columns, features=[*columns]).tensors
        assert (found["age"].item(), found["town"].item()) == (7, "x")
    crossed = fed(inputs, {"town": ["x"], "age": [7]}, features=["town", "age"]).tensors
    assert (crossed["age"].item(), crossed["town"].item()) == (7, "x")


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 1), b"bytes", {"a": 1}])
def test_inputs_of_a_kind_that_is_no_number_are_an_error(value) -> None:
    with pytest.raises(ModelError, match="column 'a' is"):
        fed([VECTOR], {"a": [value], "b": [1], "c": [1], "d": [1]}, features=list("abcd"))


def test_inputs_of_a_kind_that_cannot_be_fed_are_an_error() -> None:
    with pytest.raises(ModelError, match="cannot be made from columns"):
        fed([Tensor("x", "complex64", (None, 4))], {"x": [[1, 2, 3, 4]]})
    with pytest.raises(ModelError, match="without a dimension"):
        fed([Tensor("x", "float", ())], {"x": [[1, 2, 3, 4]]})
