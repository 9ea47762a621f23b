"""People and programs that may use the pages and the API: their roles, and proofs of who they are.

Of tokens a slow hash is kept (:mod:`opmon.tokens`), of sessions, which are as random and soon over, a SHA-256.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon import tokens
from opmon.errors import InputError, NotFoundError
from opmon.store.schema import Row, annotators, sessions

ROLES = ("annotator", "operator", "viewer")


@dataclass(frozen=True, slots=True)
class Annotator:
    """Somebody who may use the pages and the API."""

    name: str
    role: str
    monitors: tuple[str, ...] | None
    """None: all of them."""
    created_at: datetime
    revoked_at: datetime | None = None
    expires_at: datetime | None = None
    """None: the token is good until it is taken away."""

    def is_let_in(self, at: datetime) -> bool:
        """Whether the token is good at that moment."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; without a token where nobody has one, so that a name was all it was asked for, and
    where a provider told who it is."""

    name: str
    expires_at: datetime
    annotator: Annotator | None
    groups: tuple[str, ...] | None = None
    """Those that the provider told; None: no provider was asked."""


def add(connection: Connection, new: Annotator, token_hash: str) -> None:
    """Add somebody, or give somebody whose token is worth nothing any more a new one; the old one stays worthless.

    ``token_hash`` is the SHA-256 of the token.
    """
    if new.role not in ROLES:
        raise InputError(f"there is no role {new.role!r}; the roles are: {', '.join(ROLES)}")
    known = get(connection, new.name)
    if known is not None and known.is_let_in(new.created_at):
        raise InputError(
            f"{new.name} has a token already, and opmon cannot show it again: "
            f"run opmon annotators revoke {new.name}, then add them again"
        )
    values = {
        "role": new.role,
        "monitors": None if new.monitors is None else list(new.monitors),
        "found_by": tokens.found_by(token_hash),
        "token_hash": tokens.kept_of(token_hash),
        "created_at": new.created_at,
        "revoked_at": None,
        "expires_at": new.expires_at,
    }
    if known is None:
        connection.execute(annotators.insert().values(name=new.name, **values))
    else:
        connection.execute(annotators.update().where(annotators.c.name == new.name).values(**values))
        connection.execute(sessions.delete().where(sessions.c.annotator == new.name))


def revoke(connection: Connection, name: str, at: datetime) -> None:
    """Take somebody's token and sessions away, from now on; what they said stays."""
    there = annotators.c.name == name, annotators.c.revoked_at.is_(None)
    if not connection.execute(annotators.update().where(*there).values(revoked_at=at)).rowcount:
        names = [each.name for each in everybody(connection) if each.is_let_in(at)]
        raise NotFoundError(f"nobody called {name!r} has a token; those who have: {', '.join(names) or 'nobody'}")
    connection.execute(sessions.delete().where(sessions.c.annotator == name))


def get(connection: Connection, name: str) -> Annotator | None:
    row = connection.execute(sa.select(annotators).where(annotators.c.name == name)).one_or_none()
    return None if row is None else _annotator(row)


def everybody(connection: Connection) -> Sequence[Annotator]:
    """All who ever had a token, by name."""
    return [_annotator(row) for row in connection.execute(sa.select(annotators).order_by(annotators.c.name))]


def is_guarded(connection: Connection) -> bool:
    """Whether anybody was ever given a token: from then on everybody needs one."""
    return connection.scalar(sa.select(sa.literal(1)).select_from(annotators).limit(1)) is not None


def has_tokens(connection: Connection, at: datetime) -> bool:
    """Whether anybody has a token that is good then."""
    return any(each.is_let_in(at) for each in everybody(connection))


@dataclass(frozen=True, slots=True)
class Claimed:
    """Whose token it may be, and what is kept of that token: see :meth:`whose`."""

    annotator: Annotator
    kept: str

    def whose(self, token_hash: str, at: datetime) -> Annotator | None:
        """Whose token it is; None where it is nobody's, was revoked or is over. The first time it takes a while."""
        good = self.annotator.is_let_in(at) and tokens.is_kept(token_hash, self.kept)
        return self.annotator if good else None


def claimed(connection: Connection, token_hash: str) -> Claimed | None:
    """Whose token it may be, by its SHA-256; None where it is nobody's."""
    query = sa.select(annotators).where(annotators.c.found_by == tokens.found_by(token_hash))
    row = connection.execute(query).one_or_none()
    return None if row is None else Claimed(_annotator(row), row.token_hash)


def open_session(connection: Connection, session_hash: str, session: Session, at: datetime) -> None:
    """Keep a browser signed in; sessions that are over are forgotten on the way."""
    connection.execute(sessions.delete().where(sessions.c.expires_at <= at))
    connection.execute(
        sessions.insert().values(
            session_hash=session_hash,
            name=session.name,
            annotator=None if session.annotator is None else session.annotator.name,
            expires_at=session.expires_at,
            groups=None if session.groups is None else list(session.groups),
        )
    )


def session_of(connection: Connection, session_hash: str, at: datetime) -> Session | None:
    """The session that a browser is in; None where it is over, or its annotator has no token any more."""
    query = (
        sa.select(
            sessions.c.name.label("called"),
            sessions.c.expires_at.label("ends_at"),
            sessions.c.annotator,
            sessions.c.groups,
            annotators,
        )
        .outerjoin(annotators, annotators.c.name == sessions.c.annotator)
        .where(sessions.c.session_hash == session_hash, sessions.c.expires_at > at)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    if row.annotator is None:
        return Session(row.called, row.ends_at, None, None if row.groups is None else tuple(row.groups))
    if row.name is None or not (whose := _annotator(row)).is_let_in(at):
        return None
    return Session(row.called, row.ends_at, whose)


def close_session(connection: Connection, session_hash: str) -> None:
    connection.execute(sessions.delete().where(sessions.c.session_hash == session_hash))


def _annotator(row: Row) -> Annotator:
    monitors = None if row.monitors is None else tuple(row.monitors)
    return Annotator(row.name, row.role, monitors, row.created_at, row.revoked_at, row.expires_at)
