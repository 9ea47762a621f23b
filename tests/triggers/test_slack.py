from __future__ import annotations

import json

import pytest

from opmon.errors import InputError
from opmon.triggers._webhook import slack
from opmon.triggers.webhook import Webhook


def test_the_message_says_what_and_where(event) -> None:
    text = json.loads(slack({**event, "failures_uri": "runs:/abc/failures"}))["text"]
    for part in ("digits", "alarm", "accuracy-floor", "version 3", "round 7", "under the line", "runs:/abc/failures"):
        assert part in text


def test_nobody_is_mentioned_and_no_link_is_made_by_what_an_event_holds(event) -> None:
    text = json.loads(slack({**event, "message": "<!channel> <https://evil|click> & so on"}))["text"]
    assert "<" not in text
    assert "&lt;!channel&gt;" in text


def test_it_is_posted_where_the_template_asks_for_it(event, receiver) -> None:
    Webhook(receiver.url, allow=("127.0.0.1",), template="slack").act(event)
    assert set(receiver.requests[0].json) == {"text"}
    assert receiver.requests[0].headers["webhook-id"] == event["id"]


def test_other_templates_there_are_none() -> None:
    with pytest.raises(InputError, match="template"):
        Webhook("https://example.com", template="teams")  # type: ignore[arg-type]
