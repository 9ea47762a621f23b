from __future__ import annotations

import pytest

import opmon
from opmon import plugins


@pytest.mark.parametrize("name", opmon.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(opmon, name) is not None


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(AttributeError, match="Monitor"):
        _ = opmon.Montior


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in plugins.GROUPS for name in plugins.names(kind)])
def test_every_built_in_plugin_loads_and_explains_itself(kind: str, name: str) -> None:
    loaded = plugins.load(kind, name)
    assert callable(loaded)
    assert loaded.__doc__


def test_an_unknown_plugin_gets_the_nearest_name() -> None:
    with pytest.raises(opmon.OpmonError, match="Did you mean 'sups'"):
        plugins.load("sampler", "supps")
    with pytest.raises(opmon.OpmonError, match="Did you mean 'variable'"):
        plugins.make("sampler", "sups", {"variabel": "dsa"})
