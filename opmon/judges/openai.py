"""The judge ``openai``: a language model behind any address that speaks OpenAI's chat completions."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

from opmon.abc import Judge, Opinion, Question
from opmon.errors import InputError, UnavailableError
from opmon.judges._asking import LONGEST_PAUSE, Chat, Refused, Unanswered
from opmon.judges._prompt import PROMPT, messages, read
from opmon.outgoing.address import target
from opmon.types import Guide
from opmon.waiting import told_as_waiting, trying

IN_A_ROW = 3
"""So many inputs one after the other that no try was answered for: it is down, and the rest is asked later."""


@dataclass(frozen=True)
class ChatJudge(Judge):
    """Asks a language model at ``url`` what annotators are asked, one input in each request, at temperature 0.

    ``url`` is that of the service, such as ``http://localhost:8000/v1``; pictures (PNG, JPEG) are sent as pictures. An
    answer that names no class, or is no number, is none. What does not answer within ``timeout`` seconds, answers 429
    or 5xx, or what is no JSON, is tried again after a pause, longer each time, ``tries`` times in all. An input can
    say to the language model what it likes (prompt injection): it is asked about alone, so that it can spoil what is
    held of itself and of nothing else, and as the labels come from people that can make the proxy useless, never the
    estimate wrong. Inputs leave this machine for ``url``: choose one that may see them.
    """

    most: ClassVar[int | None] = 1000

    url: str = field(repr=False)
    """The address of the service; /chat/completions is put behind it."""
    model: str
    """The name of the language model there."""
    key: str | None = field(default=None, repr=False)
    """The key to the service: a reference to the environment, such as ${LLM_KEY}."""
    prompt: str = PROMPT
    """What the language model is told before the input; {classes} and {guidelines} are filled in."""
    timeout: float = 60.0
    """Seconds for a try, from connecting to the last byte."""
    tries: int = 5
    """How often an input is tried."""
    at_once: int = 4
    """How many requests run at a time."""
    options: Mapping[str, object] | None = None
    """Further keys of the request, such as {max_tokens: 2000} for one that thinks before it answers; null takes one out
    of temperature (0) and max_tokens (300)."""
    longest: int = 20_000
    """Characters of an input beyond which it is not asked about (pictures do not count)."""

    def __post_init__(self) -> None:
        target(self.url)
        if isinstance(self.timeout, bool) or not (math.isfinite(self.timeout) and 0 < self.timeout <= 600):
            raise InputError(f"timeout must be a number of seconds above 0 and at most 600; got {self.timeout!r}")
        for name, most in (("tries", 20), ("at_once", 64), ("longest", 1_000_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InputError(f"{name} must be a whole number from 1 to {most:,}; got {value!r}")
        options: object = self.options or {}
        if not isinstance(options, Mapping) or {"messages", "model"} & set(options):
            raise InputError(f"options must be keys of the request other than messages and model; got {options!r}")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and self.key.strip()):
            raise InputError("key must be one line of plain ASCII text: a reference such as ${LLM_KEY}")

    def answer(self, questions: Sequence[Question], guide: Guide) -> Iterator[Opinion]:
        chat = Chat(self.url, self.model, self.key, self.timeout, self.tries, dict(self.options or {}))
        to_ask: queue.SimpleQueue[Question] = queue.SimpleQueue()
        for question in questions:
            to_ask.put(question)
        said: queue.SimpleQueue[tuple[Question, Opinion | Exception]] = queue.SimpleQueue()
        over = threading.Event()
        workers = min(self.at_once, len(questions))
        room = threading.Semaphore(workers)  # of what was asked and not kept, so that a kill costs no more answers
        for _ in range(workers):
            threading.Thread(
                target=self._work, args=(chat, to_ask, said, over, room, guide), name="opmon-judge", daemon=True
            ).start()
        shown = target(self.url).shown
        try:
            with trying("judge", shown, f"the judge at {shown}") as breaker:
                for opinion in self._heard(said, room, len(questions)):
                    breaker.answered()
                    yield opinion
        finally:
            over.set()
            room.release(max(workers, 1))

    def _heard(
        self, said: queue.SimpleQueue[tuple[Question, Opinion | Exception]], room: threading.Semaphore, count: int
    ) -> Iterator[Opinion]:
        """The opinions as they come, each of which makes room for another question when the next is wanted; an error
        where the service is down, or refuses."""
        doubtful: list[Question] = []  # it is not known yet whether it is they or the service
        taken, shown = False, target(self.url).shown
        longest = self.tries * (self.timeout + 2 * LONGEST_PAUSE)
        for _ in range(count):
            with told_as_waiting(f"the judge at {shown}", longest) if said.empty() else nullcontext():
                question, found = said.get()
            if isinstance(found, Opinion) or (taken and isinstance(found, Refused)):
                yield from (Opinion(each.key) for each in doubtful)  # it is up: those alone cannot be answered
                doubtful.clear()
                taken = True
                yield found if isinstance(found, Opinion) else Opinion(question.key)
            elif isinstance(found, Unanswered | Refused):
                doubtful.append(question)
                if len(doubtful) >= IN_A_ROW:
                    raise UnavailableError(_down(target(self.url).shown, found)) from found
            else:
                raise found
            room.release()
        if doubtful and not taken:
            raise UnavailableError(f"the judge at {target(self.url).shown} answered none of {count} inputs")
        yield from (Opinion(each.key) for each in doubtful)

    def _work(
        self,
        chat: Chat,
        to_ask: queue.SimpleQueue[Question],
        said: queue.SimpleQueue[tuple[Question, Opinion | Exception]],
        over: threading.Event,
        room: threading.Semaphore,
        guide: Guide,
    ) -> None:
        """Ask one input after the other until none is left, or nobody listens."""
        while room.acquire() and not over.is_set():
            try:
                question = to_ask.get_nowait()
            except queue.Empty:
                return
            try:
                said.put((question, self._asked(chat, question, guide, over)))
            except (Refused, Unanswered) as exc:
                said.put((question, exc))
            except Exception as exc:  # noqa: BLE001 - told where the answers are waited for
                said.put((question, exc))
                return

    def _asked(self, chat: Chat, question: Question, guide: Guide, over: threading.Event) -> Opinion:
        told = messages(self.prompt, question, guide, self.longest)
        return Opinion(question.key) if told is None else read(question.key, chat.ask(told, over), guide)


def _down(where: str, found: Exception) -> str:
    """What is told of a service that answered nothing."""
    if isinstance(found, Refused):
        return f"the judge takes no input: {found}; check model and options of 'judge'"
    return f"the judge at {where} does not answer: {found}"
