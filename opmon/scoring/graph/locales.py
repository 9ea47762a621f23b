"""The locales by which a model puts text in lower case: those it asks for, and those on this machine."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opmon.errors import ModelError
from opmon.scoring.session import open_session

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_log = logging.getLogger(__name__)
_DEFAULT = "en_US.UTF-8"
"""The locale that ONNX Runtime takes where the node names none."""
_OTHERS = ("C.UTF-8", _DEFAULT)
_PLAIN = "C"


def locales_of(model: ModelProto) -> set[str]:
    """The locales that the model's nodes ask for."""
    return {_locale_of(node) for node in _normalizers(model.graph.node)}


def set_locale(old: str, new: str, model: ModelProto) -> None:
    """Replace the locale ``old`` by ``new`` in the nodes that ask for it."""
    import onnx

    for node in _normalizers(model.graph.node):
        if _locale_of(node) == old:
            for item in [item for item in node.attribute if item.name == "locale"]:
                node.attribute.remove(item)
            node.attribute.append(onnx.helper.make_attribute("locale", new))


@functools.cache
def another_locale(wanted: str) -> str:
    """An installed locale in which the same letters have the same lower case."""
    locale = next((name for name in _OTHERS if locale_is_there(name)), _PLAIN)
    if locale == _PLAIN:
        _log.warning(
            "the model puts text in lower case by the locale %s; neither it nor another with UTF-8 is installed, so "
            "that only A to Z are: install it for text with other letters",
            wanted,
        )
    return locale


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


def _locale_of(node: NodeProto) -> str:
    given = next((item.s.decode() for item in node.attribute if item.name == "locale"), "")
    return given or _DEFAULT


def _normalizers(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes that change the case of text, also those of the graphs inside of nodes."""
    for node in nodes:
        if node.op_type == "StringNormalizer":
            yield node
        for item in node.attribute:
            for graph in (item.g, *item.graphs):
                yield from _normalizers(graph.node)
