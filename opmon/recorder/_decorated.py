"""The decorator of functions that predict."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, TypeVar

from opmon.recorder._entries import answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from opmon.recorder.recorder import Recorder

Function = TypeVar("Function", bound="Callable[..., object]")


def decorated(recorder: Recorder, function: Function) -> Function:
    """The function, whose first argument and result are recorded; what it raises is not recorded."""

    def record(given: tuple[object, ...], named: dict[str, object], result: object) -> None:
        inputs = given[-1] if len(given) == 1 or not named else named
        recorder.record(inputs, **answered(result))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*given: object, **named: object) -> object:
            result = await function(*given, **named)
            record(given, named, result)
            return result

        return later  # type: ignore[return-value]

    @functools.wraps(function)
    def at_once(*given: object, **named: object) -> object:
        result = function(*given, **named)
        record(given, named, result)
        return result

    return at_once  # type: ignore[return-value]
