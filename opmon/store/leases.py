"""A lease per monitor: at most one process works on it, whoever dies.

* A lease has a holder, a token and a time of expiry. Taking it gives a token larger than every one before.
* It is renewed in the background while work goes on. A holder that died is replaced when the lease expires, or at once
  where its process can be seen to be gone (same machine, same process namespace).
* Every transaction that moves a round calls :meth:`Lease.fence` first: a holder that was presumed dead and wakes up
  (a suspended machine, a long stop) finds another token and its transaction is dropped. So correctness does not rest on
  clocks; only waiting does. It goes by the database's own clock, and an expiry further ahead than a lease can last was
  written before that clock went back: it counts as over. A takeover may so be early, never a double.
* Nor does one write whose tables a newer release has brought up to date meanwhile.
* A holder that stands still *inside* such a transaction keeps the row locked; PostgreSQL ends its session by itself
  (see :mod:`_connections`), or who waits for it does where PostgreSQL cannot (:mod:`_stalled`), and until then who asks
  is told that the lease is held.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from opmon.errors import DatabaseBusy, DatabaseUnavailable, LeaseHeld, LeaseLost, OpmonError
from opmon.store._connections import IDLE
from opmon.store.engine import Store
from opmon.store.migrate import HEAD, REVISIONS
from opmon.store.schema import Row, leases

log = logging.getLogger(__name__)

TIME_TO_LIVE = timedelta(seconds=20)
_SLACK = timedelta(seconds=5)
_OUTAGE = 60.0
"""For so many seconds after the database was out of reach a lease that ran out tells nothing of who had it."""
_AGAIN_SECONDS = 1.0
_SCHEMA = sa.select(sa.column("version_num")).select_from(sa.table("alembic_version")).scalar_subquery().label("schema")
_NOBODY = ""
"""The holder of a lease that was given back."""


@dataclass(frozen=True)
class Lease:
    """A lease that this process holds."""

    store: Store
    name: str
    token: int
    left_by: str | None = None
    """Who had it before and did not give it back: it ended, or hung, while it worked."""
    lives: Callable[[], bool] = field(default=lambda: True, repr=False)
    """Asked before it is renewed: work that was given up on does not keep it."""
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    def fence(self, connection: Connection) -> None:
        """Make sure, inside a transaction, that the lease is still ours until the transaction ends."""
        query = sa.select(leases.c.token, _SCHEMA).where(leases.c.name == self.name).with_for_update()
        found = connection.execute(query).one_or_none()
        if found is not None:
            _require_own(self.store, found.schema)
        if found is None or found.token != self.token:
            raise LeaseLost(
                f"the lease on {self.name!r} went to another process while this one worked; "
                "its work since the last commit is dropped and the other goes on from there"
            )

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A fenced transaction."""
        with self.store.write() as connection:
            self.fence(connection)
            yield connection

    def renew(self) -> None:
        with self.store.write() as connection:
            self.fence(connection)
            expires_at = _now(connection) + TIME_TO_LIVE
            connection.execute(leases.update().where(leases.c.name == self.name).values(expires_at=expires_at))

    def keep_alive(self) -> None:
        """Renew until told to stop; a database that does not answer is tried again, as the work itself will be."""
        while not self._stop.wait(TIME_TO_LIVE.total_seconds() / 4):
            if not self.lives():
                return
            try:
                self.renew()
            except LeaseLost:
                return
            except OpmonError as exc:
                log.warning("the lease on %s could not be renewed: %s", self.name, exc)


@contextmanager
def hold(store: Store, name: str, lives: Callable[[], bool] = lambda: True) -> Iterator[Lease]:
    """Hold the lease ``name`` while it ``lives``, or raise :class:`LeaseHeld` that says who has it."""
    lease = Lease(store, name, *_take(store, name), lives)
    keeper = threading.Thread(target=lease.keep_alive, name=f"lease-{name}", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        lease._stop.set()
        keeper.join(timeout=5)
        _release(lease)


def holders(connection: Connection) -> list[str]:
    """Who is at work on this database now, in words: one sentence for each lease that is held."""
    found, now = connection.execute(sa.select(leases).order_by(leases.c.name)).all(), _now(connection)
    return [_who(row, now) for row in found if not _is_over(row, now)]


def held(connection: Connection) -> set[str]:
    """The names of the leases that somebody holds now."""
    found, now = connection.execute(sa.select(leases)).all(), _now(connection)
    return {row.name for row in found if not _is_over(row, now)}


def tokens(connection: Connection) -> dict[str, int]:
    """The last token of each lease."""
    return {row.name: int(row.token) for row in connection.execute(sa.select(leases.c.name, leases.c.token))}


def begin_anew(connection: Connection, before: Mapping[str, int]) -> None:
    """Let nobody hold a lease, nor write with a token of ``before``: these rows came out of a backup."""
    now, known = _now(connection), tokens(connection)
    for name in sorted({*known, *before}):
        row = {
            "token": max(known.get(name, 0), before.get(name, 0)) + 1,
            "holder": _NOBODY,
            "expires_at": now - timedelta(seconds=1),
        }
        if name in known:
            connection.execute(leases.update().where(leases.c.name == name).values(row))
        else:
            connection.execute(leases.insert().values(name=name, **row))


def _take(store: Store, name: str) -> tuple[int, str | None]:
    with store.read() as connection:
        row = connection.execute(sa.select(leases).where(leases.c.name == name)).one_or_none()
        now = _now(connection)
    if row is not None and not _is_over(row, now):  # told without waiting for a lock that its holder may have
        raise LeaseHeld(_who(row, now))
    try:
        try:
            token, holder = _taken(store, name)
        except DatabaseBusy as exc:
            if not exc.freed:
                raise
            token, holder = _taken(store, name)
    except IntegrityError as exc:
        raise LeaseHeld(f"another process has just started on monitor {name!r}; let it work, or try again") from exc
    except DatabaseBusy as exc:
        if store.is_sqlite:
            raise  # it is the whole database that is held
        raise LeaseHeld(
            f"the process that worked on monitor {name!r} is gone or stands still, and has not ended its last "
            f"transaction; it is ended for it after {IDLE}. Try again then."
        ) from exc
    if holder != _NOBODY and not _is_gone(holder) and store.was_out_of_reach(_OUTAGE):
        holder = _NOBODY  # it may have been the database that kept it from giving the lease back
    return token, None if holder == _NOBODY else _process(holder)


def _taken(store: Store, name: str) -> tuple[int, str]:
    with store.write() as connection:
        _require_own(store, connection.scalar(sa.select(_SCHEMA)))
        return _take_over(connection, name)


def _take_over(connection: Connection, name: str) -> tuple[int, str]:
    """The new token, and who had the lease before and did not give it back."""
    row = connection.execute(sa.select(leases).where(leases.c.name == name).with_for_update()).one_or_none()
    now = _now(connection)
    mine = {"holder": _holder(os.getpid()), "expires_at": now + TIME_TO_LIVE}
    if row is None:
        connection.execute(leases.insert().values(name=name, token=1, **mine))
        return 1, _NOBODY
    if not _is_over(row, now):
        raise LeaseHeld(_who(row, now))
    connection.execute(leases.update().where(leases.c.name == name).values(token=row.token + 1, **mine))
    return int(row.token) + 1, str(row.holder)


def _require_own(store: Store, schema: str | None) -> None:
    """An error where a newer release has brought the tables up to date: what this one would write is not theirs."""
    if schema not in REVISIONS:
        raise DatabaseUnavailable(
            f"the database {store.where} is at schema {schema} since a newer opmon brought its tables up to date; this "
            f"one knows {HEAD}. Start the new release in place of this process. Nothing is lost: the new one goes on."
        )


def _is_over(row: Row, now: datetime) -> bool:
    return not now < row.expires_at <= now + TIME_TO_LIVE + _SLACK or _is_gone(row.holder)


def _release(lease: Lease) -> None:
    """Give it back; where the database does not take that, as soon as it does: nobody else is to think that we died."""
    try:
        _give_back(lease)
    except OpmonError as exc:
        log.warning("the lease on %s could not be given back yet: %s", lease.name, exc)
        threading.Thread(target=_give_back_later, args=(lease,), name=f"release-{lease.name}", daemon=True).start()


def _give_back_later(lease: Lease) -> None:
    while True:
        time.sleep(_AGAIN_SECONDS)
        with suppress(OpmonError):
            _give_back(lease)
            return


def _give_back(lease: Lease) -> None:
    with lease.store.write() as connection:
        connection.execute(
            leases.update()
            .where(leases.c.name == lease.name, leases.c.token == lease.token)
            .values(holder=_NOBODY, expires_at=_now(connection) - timedelta(seconds=1))
        )


def _who(row: Row, now: datetime) -> str:
    seconds = max(0, round((row.expires_at - now).total_seconds()))
    return (
        f"monitor {row.name!r} is being worked on by {_process(row.holder)}; "
        f"let it finish, or wait {seconds} s for its lease to run out if it died"
    )


def _process(holder: str) -> str:
    host, pid, *_ = holder.split("|")
    return f"process {pid} on {host}"


def _holder(pid: int) -> str:
    return "|".join((socket.gethostname(), str(pid), _namespace(), _started(pid)))


def _is_gone(holder: str) -> bool:
    """True only where the holder surely no longer runs; false whenever we cannot know."""
    if holder == _NOBODY:
        return True
    host, pid, namespace, started = holder.split("|")
    if host != socket.gethostname() or namespace != _namespace():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError):
        return False
    return _started(int(pid)) != started or _is_zombie(int(pid))


def _namespace() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - not a file's path
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _started(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def _is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] == ["Z"]


def _now(connection: Connection) -> datetime:
    """The database's clock: one for all that work on it."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return moment
