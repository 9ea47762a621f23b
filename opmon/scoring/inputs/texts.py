"""Text as a model's tensors, through a tokenizer that is a file: ``tokenizer.json``, or an ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opmon.errors import InputError, ModelError
from opmon.scoring.inputs.columns import DTYPES, Rejections, decoded
from opmon.scoring.inputs.tensors import Fed
from opmon.scoring.session import Tensor, open_session
from opmon.types import Array

Tokens = Mapping[str, Array]
_PADS = ("[PAD]", "<pad>", "<|pad|>", "<PAD>")
"""What the token that fills up shorter texts is usually called."""


@dataclass(frozen=True)
class TextInput:
    """One column of text. ``tokenizer`` is a file.

    ``*.json`` is read by the library tokenizers and gives ``input_ids``, ``attention_mask`` and ``token_type_ids``, as
    far as the model takes them, cut at ``length`` tokens, or as many as the model takes, and filled up as it says.
    ``*.onnx`` takes a tensor of strings [n] and gives the model's inputs by name, or its only one.
    """

    column: str
    tokenizer: Path
    length: int = 256

    def __post_init__(self) -> None:
        if self.tokenizer.suffix not in (".json", ".onnx"):
            raise InputError(f"tokenizer must be a .json or .onnx file; got {str(self.tokenizer)!r}")
        if self.length < 1:
            raise InputError(f"length must be at least 1; got {self.length}")

    def reader(self, inputs: Sequence[Tensor]) -> TextReader:
        if not self.tokenizer.is_file():
            raise ModelError(f"there is no tokenizer {str(self.tokenizer)!r}")
        make = _library if self.tokenizer.suffix == ".json" else _graph
        return TextReader(self.column, tuple(inputs), make(self, tuple(inputs)))


@dataclass(frozen=True)
class TextReader:
    column: str
    inputs: tuple[Tensor, ...]
    tokenize: Callable[[list[str]], Tokens]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def tensors(self, batch: pa.RecordBatch) -> Fed:
        index = batch.schema.get_field_index(self.column)
        if index < 0:
            raise ModelError(
                f"there is no column {self.column!r} with text; there are: {', '.join(batch.schema.names)}"
            )
        column, rejected = decoded(batch.column(index)), Rejections(batch.num_rows)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise ModelError(f"column {self.column!r} is {column.type}, and a tokenizer takes text")
        rejected.add(np.asarray(column.is_null()), lambda row: f"column {self.column!r} is empty")
        rows = np.flatnonzero(np.asarray(column.is_valid()))
        texts = pc.drop_null(column).to_pylist()
        if not texts:
            return Fed({item.name: np.empty((0, 1), DTYPES[item.kind]) for item in self.inputs}, rows, rejected.reasons)
        tokens = self.tokenize(texts)
        return Fed({item.name: tokens[item.name] for item in self.inputs}, rows, rejected.reasons)


def _library(plan: TextInput, inputs: tuple[Tensor, ...]) -> Callable[[list[str]], Tokens]:
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise ModelError("a tokenizer.json is read by a library that is not there: pip install 'opmon[text]'") from exc
    try:
        tokenizer = Tokenizer.from_file(str(plan.tokenizer))
    except Exception as exc:  # the library raises bare Exception
        raise ModelError(f"{str(plan.tokenizer)!r} is no tokenizer that can be read: {exc}") from exc
    fixed = next((item.shape[1] for item in inputs if len(item.shape) > 1 and item.shape[1]), None)
    cut = {key: value for key, value in (tokenizer.truncation or {}).items() if key in ("strategy", "direction")}
    tokenizer.enable_truncation(fixed or plan.length, **cut)
    if tokenizer.padding is None or fixed:
        own = tokenizer.padding or _padding(tokenizer.token_to_id, plan.tokenizer)
        tokenizer.enable_padding(**{**own, "length": fixed, "pad_to_multiple_of": None})
    names = ("pad_id", "pad_token", "pad_type_id", "direction")
    filling = {key: value for key, value in (tokenizer.padding or {}).items() if key in names}
    parts = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    chosen = {item: parts.get(item.name, "ids" if len(inputs) == 1 else "") for item in inputs}
    unknown = [item.name for item, part in chosen.items() if not part]
    if unknown:
        raise ModelError(
            f"a tokenizer gives {', '.join(parts)}, and the model takes {', '.join(unknown)}; use a function"
        )

    def tokenize(texts: list[str]) -> Tokens:
        encoded = tokenizer.encode_batch(texts)
        longest = max(map(len, encoded))
        for one in encoded:
            if len(one) < longest:  # where it fills up to fewer tokens than are taken of a text
                one.pad(longest, **filling)
        return {
            item.name: np.array([getattr(one, part) for one in encoded], DTYPES[item.kind])
            for item, part in chosen.items()
        }

    return tokenize


def _padding(number_of: Callable[[str], int | None], tokenizer: Path) -> dict[str, Any]:
    """How shorter texts are filled up where the tokenizer itself does not say: with the token that the files beside it,
    or else its vocabulary, know as the one for that; without one, as the library does by itself."""
    told = _told(tokenizer.with_name("special_tokens_map.json")) | _told(tokenizer.with_name("tokenizer_config.json"))
    named = told.get("pad_token")
    named = named.get("content") if isinstance(named, dict) else named
    side = {"direction": "left"} if told.get("padding_side") == "left" else {}
    for token in (named, *_PADS):
        number = number_of(token) if isinstance(token, str) else None
        if number is not None:
            return {"pad_id": number, "pad_token": token, **side}
    return side


def _told(file: Path) -> dict[str, Any]:
    """What a file of settings says; nothing where it is not there or is none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _graph(plan: TextInput, inputs: tuple[Tensor, ...]) -> Callable[[list[str]], Tokens]:
    session = open_session(plan.tokenizer, "cpu")
    if len(session.inputs) != 1 or session.inputs[0].kind != "string":
        raise ModelError(
            f"the tokenizer {plan.tokenizer.name} must take one tensor of strings; it takes {session.inputs}"
        )
    given = session.inputs[0]
    names = [item.name for item in session.outputs]
    if len(inputs) == 1 and inputs[0].name not in names:
        named = {inputs[0].name: names[0]}
    else:
        missing = [item.name for item in inputs if item.name not in names]
        if missing:
            raise ModelError(f"the tokenizer gives {', '.join(names)}, and the model takes {', '.join(missing)} too")
        named = {item.name: item.name for item in inputs}

    def tokenize(texts: list[str]) -> Tokens:
        values = np.array(texts, dtype=object).reshape(-1, *(1 for _ in given.shape[1:]))
        outputs = session.run(list(named.values()), {given.name: values})
        return {item.name: np.asarray(outputs[i], DTYPES[item.kind]) for i, item in enumerate(inputs)}

    return tokenize
