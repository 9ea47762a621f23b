"""What is plugged in is checked against its contract."""

from __future__ import annotations

from typing import Any

import pytest

from opmon import abc, plugins
from opmon.errors import PluginError

KINDS = sorted(plugins.CONTRACTS)


class Duck:
    """Has the method of a sampler and subclasses nothing."""

    def draw(self, frame: Any, budget: int, rng: Any) -> Any: ...


class Half(abc.Source):
    """A source that forgot two methods."""

    def pending(self, positions: Any, limit: int | None = None) -> Any: ...


def test_a_class_outside_the_contract_is_told_what_to_subclass() -> None:
    with pytest.raises(PluginError, match=r"'duck' \(.*:Duck\) must subclass opmon\.abc\.Sampler"):
        plugins.made("sampler", "duck", Duck)


def test_missing_methods_are_named() -> None:
    with pytest.raises(PluginError, match=r"has no method fetch and no method read; opmon\.abc.Source says"):
        plugins.require_contract("source", "half", Half)
    with pytest.raises(PluginError, match="has no method fetch and no method pending and no method read"):
        plugins.require_contract("source", "duck", Duck)


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_built_in_keeps_its_contract(kind: str) -> None:
    for name in plugins.names(kind):
        plugins.load(kind, name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_hook_of_a_contract_is_explained(kind: str) -> None:
    contract = plugins.CONTRACTS[kind]
    hooks = {name: hook for name, hook in vars(contract).items() if not name.startswith("_")}
    bare = [name for name, hook in hooks.items() if callable(hook) and not hook.__doc__]
    assert not bare, f"{contract.__name__} says nothing of {bare}"
