from __future__ import annotations

from opmon.types import Verdict


def test_what_is_advised_is_not_shown_as_ok() -> None:
    assert Verdict("drift", "ok", "", details={"advice": True}).word == "advice"
    assert Verdict("drift", "ok", "", details={"advice": False}).word == "ok"
    assert Verdict("floor", "alarm", "").word == "alarm"
    assert Verdict("drift", "unknown", "", details={"advice": True}).word == "unknown"
