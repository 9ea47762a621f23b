"""Monitors with tasks to label, and a server that hands them out."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from opmon.adjudication import Asked
from opmon.config import Settings
from opmon.store import annotators, queue, rounds
from opmon.store.annotators import Annotator
from opmon.store.engine import Store, open_store
from opmon.store.plans import RoundPlan
from opmon.types import Json, Slice
from opmon.web.secrets import new_token, sha256_of
from opmon.web.server import Server

DIGITS = tuple("0123456789")


def monitor(**keys: object) -> dict[str, Any]:
    """The shortest monitor there is, and what ``keys`` say."""
    return {"model": "models:/digits/1", "source": {"path": "production"}, **keys}


@dataclass
class World:
    """A configuration with its database."""

    settings: Settings
    store: Store

    @classmethod
    def of(cls, database: str, folder: Path, monitors: Mapping[str, Any] | None = None, **web: object) -> World:
        plain = {
            "database": database,
            "web": {"listen": "127.0.0.1:0", **web},
            "monitors": dict(monitors or {"digits": monitor(classes=list(DIGITS))}),
        }
        return cls(Settings.from_mapping(plain, folder), open_store(database))

    def ask(
        self, name: str, payloads: Sequence[Mapping[str, Json]], classes: Sequence[str] | None = None, **task: object
    ) -> list[str]:
        """Queue a round of tasks with these payloads, in this order; gives their inputs. ``classes`` are its model's,
        where none are configured."""
        settings, now = self.settings.monitor(name), datetime.now(UTC)
        with self.store.write() as connection:
            number = rounds.count(connection, name) + 1
            plan = RoundPlan(problem=settings.problem, scale=settings.scale)
            own = {"model_name": name, "model_version": "1", "plan": plan, "opened_at": now}
            piece = Slice("a", str(number), str(number + 1), len(payloads), now)
            rounds.add(connection, name, [piece], received=len(payloads), only_version=None, **own)  # type: ignore[arg-type]
            round_ = rounds.get(connection, name, number)
            ids = [f"{name}-{number}-{k}" for k in range(len(payloads))]
            asked = [
                Asked(k, ids[k], "7", {}, dict(payload), **task)  # type: ignore[arg-type]
                for k, payload in enumerate(payloads)
            ]
            queue.queue(connection, name, round_.id, 0, asked, now)
            known = settings.class_names or classes
            due = now + timedelta(days=7)
            names = None if known is None else list(known)
            rounds.update(connection, round_.id, state="labelling", classes=names, deadline_at=due)
        return ids

    def said(self) -> list[tuple[str, str, str | None, str | None]]:
        """All labels in their order: input, annotator, truth, reason of a skip."""
        import sqlalchemy as sa

        from opmon.store.schema import labels, tasks

        query = sa.select(tasks.c.input_id, labels.c.annotator, labels.c.truth, labels.c.why).join(
            tasks, tasks.c.id == labels.c.task_id
        )
        with self.store.read() as connection:
            return [tuple(row) for row in connection.execute(query.order_by(labels.c.id))]

    def invite(self, name: str, role: str = "annotator", monitors: Sequence[str] | None = None) -> str:
        """A token of somebody new."""
        token = new_token()
        limited = None if monitors is None else tuple(monitors)
        with self.store.write() as connection:
            annotators.add(connection, Annotator(name, role, limited, datetime.now(UTC)), sha256_of(token))
        return token

    @contextmanager
    def served(self) -> Iterator[Server]:
        with Server(self.settings, self.store) as server:
            yield server


def picture(digit: int, side: int = 28) -> np.ndarray[Any, Any]:
    """A grey picture with a bar as long as the digit, so that one can tell which it is."""
    pixels = np.full((side, side), 20, dtype=np.uint8)
    pixels[side // 4 : 3 * side // 4, 2 : 2 + max(1, digit * (side - 4) // 10)] = 230
    return pixels


def encoded(pixels: np.ndarray[Any, Any], kind: str = "PNG") -> dict[str, str]:
    """The picture as the payload of a task holds one."""
    kept = io.BytesIO()
    Image.fromarray(pixels).save(kept, format=kind)
    return {"base64": base64.b64encode(kept.getvalue()).decode()}
