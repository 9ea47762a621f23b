"""The suite that every action passes."""

from __future__ import annotations

import copy
from typing import Any

from opmon.abc import Action
from opmon.types import Document

EVENT: Document = {
    "id": "5f1b0e0a-f007-565c-9205-760d4ba94c67",
    "type": "opmon.alarm",
    "monitor": "digits",
    "rule": "level",
    "round": 7,
    "model": {"name": "digits", "version": "3", "uri": "models:/digits/3"},
    "message": "accuracy 85.1 % (95 % interval 80.2 % to 89.3 %), the line is 90 %",
    "accuracy": 0.851,
    "low": 0.802,
    "high": 0.893,
    "threshold": 0.9,
}


def check_action(action: Action, registry: Any = None, event: Document = EVENT) -> None:
    """Check that an action takes an event, takes it again without harm, and leaves it as it is.

    ``registry`` is what the action is bound to: a registry, or a stand-in for one.
    """
    assert isinstance(action, Action), f"{type(action).__name__} does not subclass opmon.abc.Action"
    bound = action.bind(registry)
    assert isinstance(bound, Action), "bind() gives the action with its registry"
    given = copy.deepcopy(dict(event))
    for _ in range(2):
        answer: object = bound.act(given)
        assert answer is None, "act() returns nothing; it raises DeliveryError where the target did not take the event"
    assert given == dict(event), "act() changed the event"
