"""Object stores by their URL: the one place where they are opened, with time limits and credentials of their own tools.

``s3://bucket/prefix`` (also MinIO and the like, at ``AWS_ENDPOINT_URL``), ``gs://bucket/prefix`` and
``abfs://container@account.dfs.core.windows.net/prefix``. Credentials and regions come from where the tools of the
stores look for them: the environment, their files, the machine's role. None may stand in a URL.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opmon.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("s3", "gs", "abfs", "abfss", "hdfs")
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
AT_ONCE = 32
"""So many objects are fetched side by side: each is a round trip or two."""
_SPELT = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Other names of the same stores, as Spark and Arrow write them."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
_OURS_TO_ASK = ("ACCESS_DENIED", "INVALID_OBJECT_NAME", "HTTP response code 403", "Forbidden")


def scheme_of(text: str) -> str | None:
    """The scheme of a URL; None where it is none.

    >>> scheme_of("s3a://bucket/a.png"), scheme_of("https://host/a.png"), scheme_of("pictures/a.png")
    ('s3', 'https', None)
    """
    match = _URL.match(text)
    return None if match is None else _SPELT.get(match[1].lower(), match[1].lower())


def store_url(text: str) -> str:
    """The URL of a folder or an object of a store, spelt one way; an error for any other address.

    >>> store_url("s3a://bucket/pictures/")
    's3://bucket/pictures'
    """
    scheme = scheme_of(text)
    if scheme not in SCHEMES:
        raise InputError(
            f"must be a path or begin with file://, {', '.join(f'{each}://' for each in SCHEMES)}; got "
            f"{f'{scheme}://' if scheme else repr(text[:60])}"
        )
    rest = text.split("://", 1)[1]
    bucket, _, key = rest.partition("/")
    user, at, _ = bucket.rpartition("@")
    if ":" in user or (at and not scheme.startswith("abfs")):  # container@account is how Azure says where
        raise InputError(
            "must not hold credentials: a store finds them in the environment (AWS_ACCESS_KEY_ID, "
            "GOOGLE_APPLICATION_CREDENTIALS …), in its own files or from the machine's role"
        )
    if "=" in urlsplit(f"s3://{rest}").query:
        raise InputError("must not hold options: an endpoint is read from AWS_ENDPOINT_URL, a region from AWS_REGION")
    if not bucket:
        raise InputError(f"names no bucket; write {scheme}://bucket/prefix")
    if ".." in key.split("/"):
        raise InputError("must not hold '..'")
    return f"{scheme}://{rest}".rstrip("/")


def shown_place(path: str) -> str:
    """Who answers when a path is read: a path on this machine itself, of a URL the store and its bucket.

    >>> shown_place("s3a://bucket/logs/2026"), shown_place("/data/logs")
    ('s3://bucket', '/data/logs')
    """
    scheme = scheme_of(path)
    return path if scheme is None else f"{scheme}://{path.split('://', 1)[1].partition('/')[0].rpartition('@')[2]}"


def open_filesystem(url: str) -> tuple[FileSystem, str]:
    """The store of a URL, and the path in it. Nothing is asked of it yet, but for the region of a bucket of AWS."""
    from pyarrow import ArrowNotImplementedError
    from pyarrow.fs import FileSystem

    checked = store_url(url)
    if checked.startswith("s3://"):
        path = checked.removeprefix("s3://")
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return _s3(endpoint, _region(path.partition("/")[0], endpoint), os.environ.get("AWS_ACCESS_KEY_ID")), path
    try:
        filesystem, path = FileSystem.from_uri(checked)
    except (OSError, ValueError, ArrowNotImplementedError) as exc:  # the last: pyarrow was built without this store
        raise InputError(f"{checked} cannot be opened: {_first_line(exc)}") from exc
    return filesystem, path


@functools.lru_cache(maxsize=16)
def _s3(endpoint: str | None, region: str | None, key: str | None) -> FileSystem:
    """The S3 of an endpoint; ``key`` only tells one set of credentials from another."""
    from pyarrow.fs import S3FileSystem

    return S3FileSystem(
        endpoint_override=endpoint,
        region=region,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
    )


@functools.lru_cache(maxsize=64)
def _region(bucket: str, endpoint: str | None) -> str | None:
    """The region that is named, or that AWS says the bucket is in; other endpoints take any."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named or endpoint:
        return named or "us-east-1"
    from pyarrow.fs import resolve_s3_region

    try:
        return str(resolve_s3_region(bucket))
    except OSError:  # a profile may name it, and if none does the first request says what is wrong
        return None


@dataclass(frozen=True)
class StoreFolder:
    """What lies below a URL, and nothing else."""

    url: str

    def path_of(self, name: str) -> str | None:
        """The path of an object by its name below the folder, or by its whole URL; None outside of it.

        >>> folder = StoreFolder("s3://bucket/pictures")
        >>> folder.path_of("a.png"), folder.path_of("s3://bucket/pictures/a.png"), folder.path_of("s3://other/a.png")
        ('a.png', 'a.png', None)
        """
        scheme = scheme_of(name)
        if scheme is not None:
            whole = f"{scheme}://{name.split('://', 1)[1]}"
            if not whole.startswith(f"{self.url}/"):
                return None
            name = whole.removeprefix(f"{self.url}/")
        if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
            return None
        return name

    def read(self, path: str, most: int) -> bytes | str:
        """The bytes of an object of the folder; or, as text, why there are none. An error where the store is away."""
        filesystem, folder = open_filesystem(self.url)
        try:
            with filesystem.open_input_file(f"{folder}/{path}") as stream:
                if stream.size() > most:
                    return f"an object above {most} bytes"
                return bytes(stream.read())
        except OSError as exc:
            why = refusal(exc)
            if why is None:
                raise no_answer(self.url, exc) from exc
            return f"an object that {why}"


def refusal(exc: OSError) -> str | None:
    """What a store says that will be so tomorrow; None where it did not answer."""
    if isinstance(exc, FileNotFoundError):
        return "is not there"
    if isinstance(exc, PermissionError) or any(word in _first_line(exc) for word in _OURS_TO_ASK):
        return "is not there, or that these credentials may not read"
    return None


def no_answer(url: str, exc: OSError) -> UnavailableError:
    """The error for a store that does not answer."""
    return UnavailableError(f"{url} does not answer: {_first_line(exc)[:300]}")


def _first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0]
