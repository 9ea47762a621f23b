"""The API's own description held against it: whatever it allows to send, and what it does not, is no fault."""

from __future__ import annotations

from itertools import cycle

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error

from opmon.web.access import NEEDS
from tests.security.attacked import API, Attacked

EXAMPLES = 8
"""Requests to each operation as the description allows them, and as many that it does not; by each role in turn."""
LEFT_OUT = {f"GET {API}/openapi.json"}
"""The description does not describe itself."""
KNOWN = {"monitor": "digits", "number": 3, "place": 0}
"""Of each second request these parts of the path are there, so that it comes further than to 404."""


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_nothing_that_is_sent_is_a_fault(service: Attacked, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}{API}/openapi.json")
    operator, *others = [{"authorization": f"Bearer {token}"} for token in service.tokens.values()][::-1]
    turns, seen = cycle([{}, *others]), set()
    for found in schema.get_all_operations():
        operation = found.ok()
        seen.add(operation.label)

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def attack(case: Case) -> None:
            for parts in (dict(case.path_parameters), {**case.path_parameters, **_known(case)}):
                case.path_parameters = parts
                case.call_and_validate(headers=operator, checks=[not_a_server_error])
            case.call_and_validate(headers=next(turns), checks=[not_a_server_error])

        attack()
    stated = {f"{method} {path}".replace(":path}", "}") for method, path in NEEDS if path.startswith(API)}
    assert seen == stated - LEFT_OUT


def _known(case: Case) -> dict[str, object]:
    return {name: value for name, value in KNOWN.items() if name in case.path_parameters}
