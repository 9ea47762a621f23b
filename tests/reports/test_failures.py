from __future__ import annotations

import csv
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.binding import bound
from opmon.errors import InputError
from opmon.reports.failures import OVERVIEW, Failure, failures_page, failures_table, write_failures
from opmon.types.grouped import FailureGroup

SCRIPT = "</td><script>alert('x')</script>"


def failure(number: int = 1, **payload: Any) -> Failure:
    return Failure(f"in-{number}", "8", "3", 0.7, 12.5, ("ann", "bob"), payload)


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_table_holds_what_retraining_needs() -> None:
    table = failures_table([failure(1, age=31, job="clerk"), failure(2, age=None, pixels=[0.0, 1.0])])
    assert table.column_names == [*OVERVIEW, "age", "job", "pixels"]
    assert table.to_pylist()[0] == {
        "input_id": "in-1",
        "truth": "8",
        "prediction": "3",
        "confidence": 0.7,
        "weight": 12.5,
        "annotators": ["ann", "bob"],
        "age": 31,
        "job": "clerk",
        "pixels": None,
    }


def test_payload_columns_keep_their_types() -> None:
    table = failures_table(
        [failure(x=np.float32([1, 2]), image=np.ones((2, 2), np.uint8), raw=b"\0\1", amount=np.int16(3), flag=True)]
    )
    assert table.schema.field("x").type == pa.list_(pa.float32())
    assert table["image"].to_pylist() == [[[1, 1], [1, 1]]]
    assert table["raw"].to_pylist() == [b"\0\1"]
    assert table.schema.field("amount").type == pa.int16()
    assert table.schema.field("flag").type == pa.bool_()


def test_a_payload_column_never_replaces_one_of_ours() -> None:
    table = failures_table([failure(truth="cat", payload_truth="dog")])
    assert table["truth"].to_pylist() == ["8"]
    assert table["payload_truth"].to_pylist() == ["cat"]
    assert table["payload_payload_truth"].to_pylist() == ["dog"]


def test_values_without_a_common_type_are_kept_as_json() -> None:
    table = failures_table([failure(v=1), failure(v="two"), failure(v=None), failure(v=[Decimal(3)])])
    assert table["v"].to_pylist() == ["1", '"two"', None, '["3"]']


def test_no_failures_make_an_empty_dataset(tmp_path: Path) -> None:
    dataset, overview = write_failures([], tmp_path / "new")
    assert pq.read_table(dataset).num_rows == 0
    assert pq.read_table(dataset).column_names == list(OVERVIEW)
    assert overview.read_text().splitlines() == [",".join(OVERVIEW)]


def test_the_dataset_holds_ten_thousand_and_the_page_a_few(tmp_path: Path) -> None:
    failures = [failure(i, text="w" * 500) for i in range(10_000)]
    dataset, overview = write_failures(failures, tmp_path)
    assert pq.read_table(dataset).num_rows == 10_000
    assert len(overview.read_text().splitlines()) == 10_001
    assert "w" not in overview.read_text().split("\n", 1)[1]
    page = failures_page(failures, tmp_path / "failures.html")
    assert page.stat().st_size < 200_000
    assert "10,000 failures; the first 200 are listed" in Page(page).text


def test_a_spreadsheet_takes_no_cell_for_a_formula(tmp_path: Path) -> None:
    hostile = Failure('=HYPERLINK("http://x")', "-1.5", "+cmd", None, 2.0, ("@a",))
    _, overview = write_failures([hostile], tmp_path)
    with overview.open(newline="") as file:
        row = list(csv.reader(file))[1]
    assert row == ['\'=HYPERLINK("http://x")', "-1.5", "'+cmd", "", "2.0", "'@a"]


def test_a_page_escapes_everything(tmp_path: Path) -> None:
    hostile = Failure(SCRIPT, "مرحبا\u202eevil", "\U0001f600", None, 1.0, (SCRIPT,), {SCRIPT: SCRIPT, "none": None})
    page = Page(failures_page([hostile], tmp_path / "failures.html", title=SCRIPT))
    assert "script" not in page.tags
    assert page.text.count("<script>") >= 4, "what was typed is shown"
    assert "\u202e" not in page.text
    assert "\U0001f600" in page.text


def test_a_page_without_failures_says_so(tmp_path: Path) -> None:
    assert "No failure was found" in Page(failures_page([], tmp_path / "failures.html")).text


def test_a_caption_says_what_was_said_and_what_is() -> None:
    assert failure().caption == "said 3, is 8"
    assert Failure("1", "8", None).caption == "said nothing, is 8"


def test_answers_are_shown_as_people_read_them(tmp_path: Path) -> None:
    price = Failure("a", "98252.40", "-31773.685418191613", error=130026.085, problem="regression")
    tags = Failure("b", "[]", '["price", "staff"]', problem="multilabel")
    page = failures_page([price], tmp_path / "a.html", kind="largest errors", unit="€").read_text(encoding="utf-8")
    assert bound("-31,774 €") in page
    assert bound('<td class="number"><bdi>98,252 €</bdi></td>') in page
    assert tags.caption == "said price, staff, is none of them"


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_a_weight_is_positive(weight: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        Failure("1", "a", "b", weight=weight)


def test_a_weight_that_is_not_known_is_no_number(tmp_path: Path) -> None:
    unknown = Failure("in-1", "8", "3", weight=None)
    assert failures_table([unknown]).to_pylist()[0]["weight"] is None
    assert '<td class="number">–</td>' in failures_page([unknown], tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_large_weight_is_written_out(tmp_path: Path) -> None:
    page = failures_page([Failure("in-1", "8", "3", weight=123_456.7)], tmp_path / "page.html")
    assert '<td class="number">123457</td>' in page.read_text(encoding="utf-8")


def test_failures_with_nothing_in_common_are_no_share_of_themselves(tmp_path: Path) -> None:
    rest = FailureGroup("rest", (), 5, share=1.0, low=0.6, high=1.0, examples=("a",))
    cause = FailureGroup("condition", ("age missing",), 7, share=0.6, low=0.4, high=0.8, lift=4.0, lift_at_least=2.0)
    alone = Page(failures_page([failure()], tmp_path / "a.html", groups=[rest])).text
    both = Page(failures_page([failure()], tmp_path / "b.html", groups=[cause, rest])).text
    assert "Nothing was found that these failures have in common." in alone
    assert "A group is named" not in alone
    assert "of all failures" not in alone
    assert "of all failures (40" in both
