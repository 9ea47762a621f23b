"""The locales by which a model puts text in lower case: which it wants, and which are on this machine."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from opmon.errors import ModelError
from opmon.scoring.session import open_session

_log = logging.getLogger(__name__)
_DEFAULT = "en_US.UTF-8"
"""What ONNX Runtime takes where the node does not say."""
_OTHERS = ("C.UTF-8", _DEFAULT)
_PLAIN = "C"


def locales_of(model: Any) -> set[str]:
    """The locales that the model's nodes want."""
    return {_locale_of(node) for node in _normalizers(model.graph.node)}


def set_locale(old: str, new: str, model: Any) -> None:
    """Let the nodes that want ``old`` take ``new``."""
    import onnx

    for node in _normalizers(model.graph.node):
        if _locale_of(node) == old:
            for item in [item for item in node.attribute if item.name == "locale"]:
                node.attribute.remove(item)
            node.attribute.append(onnx.helper.make_attribute("locale", new))


@functools.cache
def another_locale(wanted: str) -> str:
    """A locale that is there, in which the same letters have the same lower case."""
    found = next((name for name in _OTHERS if locale_is_there(name)), _PLAIN)
    if found == _PLAIN:
        _log.warning(
            "the model puts text in lower case by the locale %s; neither it nor another with UTF-8 is installed, so "
            "that only A to Z are: install it for text with other letters",
            wanted,
        )
    return found


@functools.cache
def locale_is_there(name: str) -> bool:
    """Whether ONNX Runtime finds a locale on this machine."""
    from onnx import TensorProto, helper

    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER", locale=name)
    given, made = (helper.make_tensor_value_info(item, TensorProto.STRING, [None]) for item in "xy")
    graph = helper.make_graph([node], "locale", [given], [made])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 10)])
    try:
        open_session(model.SerializeToString(), "cpu", 1)
    except ModelError:
        return False
    return True


def _locale_of(node: Any) -> str:
    given = next((item.s.decode() for item in node.attribute if item.name == "locale"), "")
    return given or _DEFAULT


def _normalizers(nodes: Sequence[Any]) -> Iterator[Any]:
    """The nodes that change the case of text, also those of the graphs inside of nodes."""
    for node in nodes:
        if node.op_type == "StringNormalizer":
            yield node
        for item in node.attribute:
            for graph in (item.g, *item.graphs):
                yield from _normalizers(graph.node)
