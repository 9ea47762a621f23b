"""People and programs that may use the pages and the API: their roles, and proofs of who they are.

Of tokens and sessions only a SHA-256 is kept. A slow hash protects what people make up and attackers can guess; a token
of 256 random bits can be guessed by nobody, whatever a guess costs, and its hash is computed with every request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

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


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; without a token where nobody has one, so that a name was all it was asked for."""

    name: str
    expires_at: datetime
    annotator: Annotator | None


def add(connection: Connection, new: Annotator, token_hash: str) -> None:
    """Add somebody, or give somebody who was revoked a new token; the old one stays worthless."""
    if new.role not in ROLES:
        raise InputError(f"there is no role {new.role!r}; the roles are: {', '.join(ROLES)}")
    known = get(connection, new.name)
    if known is not None and known.revoked_at is None:
        raise InputError(
            f"{new.name} has a token already, and opmon cannot show it again: "
            f"run opmon annotators revoke {new.name}, then add them again"
        )
    values = {
        "role": new.role,
        "monitors": None if new.monitors is None else list(new.monitors),
        "token_hash": token_hash,
        "created_at": new.created_at,
        "revoked_at": None,
    }
    if known is None:
        connection.execute(annotators.insert().values(name=new.name, **values))
    else:
        connection.execute(annotators.update().where(annotators.c.name == new.name).values(**values))


def revoke(connection: Connection, name: str, at: datetime) -> None:
    """Take somebody's token and sessions away, from now on; what they said stays."""
    there = annotators.c.name == name, annotators.c.revoked_at.is_(None)
    if not connection.execute(annotators.update().where(*there).values(revoked_at=at)).rowcount:
        names = [each.name for each in everybody(connection) if each.revoked_at is None]
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


def has_tokens(connection: Connection) -> bool:
    """Whether anybody has a token that is good now."""
    query = sa.select(sa.literal(1)).select_from(annotators).where(annotators.c.revoked_at.is_(None)).limit(1)
    return connection.scalar(query) is not None


def by_token(connection: Connection, token_hash: str) -> Annotator | None:
    """Whose token it is; None where it is nobody's, or was revoked."""
    query = sa.select(annotators).where(annotators.c.token_hash == token_hash, annotators.c.revoked_at.is_(None))
    row = connection.execute(query).one_or_none()
    return None if row is None else _annotator(row)


def open_session(connection: Connection, session_hash: str, session: Session, at: datetime) -> None:
    """Keep a browser signed in; sessions that are over are forgotten on the way."""
    connection.execute(sessions.delete().where(sessions.c.expires_at <= at))
    connection.execute(
        sessions.insert().values(
            session_hash=session_hash,
            name=session.name,
            annotator=None if session.annotator is None else session.annotator.name,
            expires_at=session.expires_at,
        )
    )


def session_of(connection: Connection, session_hash: str, at: datetime) -> Session | None:
    """The session that a browser is in; None where it is over, or its annotator has no token any more."""
    query = (
        sa.select(sessions.c.name.label("called"), sessions.c.expires_at, sessions.c.annotator, annotators)
        .outerjoin(annotators, annotators.c.name == sessions.c.annotator)
        .where(sessions.c.session_hash == session_hash, sessions.c.expires_at > at)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    if row.annotator is None:
        return Session(row.called, row.expires_at, None)
    return (
        None if row.name is None or row.revoked_at is not None else Session(row.called, row.expires_at, _annotator(row))
    )


def close_session(connection: Connection, session_hash: str) -> None:
    connection.execute(sessions.delete().where(sessions.c.session_hash == session_hash))


def _annotator(row: Row) -> Annotator:
    monitors = None if row.monitors is None else tuple(row.monitors)
    return Annotator(row.name, row.role, monitors, row.created_at, row.revoked_at)
