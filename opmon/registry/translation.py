"""The one place where errors of MLflow and its libraries become opmon's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opmon import disk
from opmon.ceiling import shortage
from opmon.errors import (
    ConfigError,
    InputError,
    NotFoundError,
    OpmonError,
    RegistryUnavailable,
    StateUnavailable,
)
from opmon.outgoing.on_the_way import on_the_way
from opmon.redaction import redacted

_MISSING = frozenset({"RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"})
_LOST = re.compile(r"while downloading one or more artifacts.*(?:404 Client Error|NoSuchKey|\(404\))", re.DOTALL)
"""How MLflow wraps a missing artifact, with the code of an internal error."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded|database or disk is full")
_DOWNLOAD = re.compile(r"while downloading one or more artifacts")
_SERVER = re.compile(r"Server Error")
_ERRORS = re.compile(r"too many (\d{3}) error responses")
_NOT_JSON = re.compile(r"not in a valid JSON format\. Response body: (.*)", re.DOTALL)
_REFUSED = frozenset({"UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED", "PERMISSION_DENIED"})
_WRONG = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_ALREADY_EXISTS", "ALREADY_EXISTS"})


@contextmanager
def translated(doing: str, where: str) -> Iterator[None]:
    """Raise opmon's error for whatever MLflow raises; ``doing`` is what was asked of the server ``where``."""
    try:
        yield
    except OpmonError:
        raise
    except Exception as exc:
        _redact(exc)
        raise _translate(exc, doing, redacted(where)) from exc


def is_answer(exc: BaseException) -> bool:
    """Whether the server answered with an error of its own, not with something unreadable."""
    return getattr(exc, "error_code", None) in _MISSING | _REFUSED | _WRONG


def _translate(exc: Exception, doing: str, where: str) -> OpmonError:
    message = first_line(exc)
    here = disk.trouble(exc) or shortage(exc)
    if here is not None:
        return here
    if _FULL.search(str(exc)):
        if _DOWNLOAD.search(str(exc)) and not _SERVER.search(str(exc)):
            return StateUnavailable(f"{doing}: the disk of this machine is full. Free some space. Nothing is lost.")
        return RegistryUnavailable(
            f"{doing}: the disk of MLflow at {where} is full. Free some space there. Nothing is lost. ({message})"
        )
    code = getattr(exc, "error_code", None)
    status = getattr(getattr(exc, "response", None), "status_code", None)  # of requests, where MLflow lets it through
    if code in _MISSING or status == 404 or isinstance(exc, FileNotFoundError) or _LOST.search(str(exc)):
        return NotFoundError(f"{doing}: {message}")
    if code in _REFUSED or status in (401, 403):
        return RegistryUnavailable(
            f"{doing}: MLflow at {where} refused the credentials. Set MLFLOW_TRACKING_USERNAME and "
            f"MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, to ones that may do this. ({message})"
        )
    if code in _WRONG:
        return InputError(f"{doing}: MLflow at {where} does not take it: {message}")
    if isinstance(exc, ImportError):
        return ConfigError(
            f"{doing}: a package that MLflow needs for {where} is not installed: {message}. "
            f"Install it (boto3 for s3://, google-cloud-storage for gs://, azure-storage-blob for wasbs://)."
        )
    return _wrongly(exc, doing, where) or _unreached(exc, doing, where, message)


def _wrongly(exc: Exception, doing: str, where: str) -> OpmonError | None:
    """The error for an answer that is none of MLflow's, or that only says that it cannot."""
    errors, page = _ERRORS.search(str(exc)), _NOT_JSON.search(str(exc))
    if errors is not None and errors[1] == "429":
        return RegistryUnavailable(
            f"{doing}: MLflow at {where} takes no more at the moment (429). Nothing is lost: it is tried again."
        )
    if errors is not None:
        return RegistryUnavailable(
            f"{doing}: MLflow at {where} answered with the error {errors[1]} each time. Nothing is lost; its own log "
            f"tells why, such as a disk that is full or a database that is away."
        )
    if page is not None:
        return RegistryUnavailable(
            f"{doing}: something else answers at {where} than MLflow, such as a page to sign in on: "
            f"{redacted(page[1])[:80]}. Nothing is lost; check the address, and give what stands before MLflow the "
            f"credentials it wants: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
        )
    return None


def _unreached(exc: Exception, doing: str, where: str, message: str) -> OpmonError:
    words = on_the_way(exc, "REQUESTS_CA_BUNDLE or MLFLOW_TRACKING_SERVER_CERT_PATH")
    if words is not None and where.startswith("http"):
        return RegistryUnavailable(
            f"{doing}: MLflow at {where} cannot be reached: {words}. Nothing is lost; check that the server runs "
            f"and that the address is right."
        )
    return RegistryUnavailable(
        f"{doing}: MLflow at {where} did not answer as it should ({type(exc).__name__}: {message}). Nothing is lost; "
        f"check that the server runs and that the address is right."
    )


def _redact(exc: BaseException) -> None:
    """Take credentials out of the error and of those that led to it: a logged traceback shows them all."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [exc]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.args = tuple(redacted(arg) if isinstance(arg, str) else arg for arg in one.args)
        if isinstance(getattr(one, "message", None), str):
            one.message = redacted(one.message)  # type: ignore[attr-defined]
        todo += [one.__cause__, one.__context__, *(arg for arg in one.args if isinstance(arg, BaseException))]


def first_line(exc: Exception) -> str:
    """The first line of another library's message, without credentials."""
    text = redacted(str(exc)).strip() or type(exc).__name__
    line = text.splitlines()[0]
    return line if len(line) <= 500 else f"{line[:497]}..."
