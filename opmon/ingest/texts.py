"""JSON from strangers: read under limits, so that nothing that is sent can hurt the process."""

from __future__ import annotations

import json

from opmon.ingest.refused import Refused
from opmon.sources._flaws import nested
from opmon.types import Json

MOST_LEVELS = 60


def text_of(body: bytes) -> str:
    """The text of a body, which must be UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Refused(400, f"the body is not UTF-8: byte 0x{body[exc.start]:02x} at {exc.start}") from None


def json_of(body: bytes) -> Json:
    """What the body says as JSON; ``NaN``, as Python writes it, is a number."""
    text = text_of(body)
    require_flat(body)
    try:
        value: Json = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise Refused(400, "the body is not JSON: half of a surrogate pair stands alone in a text") from None
    except (ValueError, RecursionError) as exc:
        raise Refused(400, f"the body is not JSON: {str(exc)[:200]}") from None


def require_flat(body: bytes) -> None:
    """Refuse what is nested too deeply, before a parser sees it."""
    if body.count(b"[") + body.count(b"{") > MOST_LEVELS and nested(body) > MOST_LEVELS:
        raise Refused(400, f"objects and lists are nested more than {MOST_LEVELS} levels deep")


def as_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
