"""How many annotators are to speak of a task, from what was said of it so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opmon.adjudication import TRUTH


def wanted(words: Mapping[str, str | None], needs: int, confirm: int, wrong: Callable[[str], bool]) -> int:
    """How many annotators are to speak of a task: ``needs``, and more where an answer makes it a failure of the model.

    ``words`` are the last words by annotator, None for a skip. Where an answer is ``wrong``, ``confirm`` annotators are
    to answer, and one more where their answers differ; 0: such a task is like any other. A skip counts as having
    spoken, but is no second opinion: somebody else is asked, so long as that is not more than ``confirm + 1`` in all.

    >>> wanted({"ann": "cat"}, 1, 2, lambda answer: answer != "cat")
    1
    >>> [wanted(words, 1, 2, lambda answer: answer != "cat") for words in (
    ...     {"ann": "dog"}, {"ann": "dog", "ben": "cat"}, {"ann": "dog", "ben": None}, {"ann": None})]
    [2, 3, 3, 1]
    """
    if not confirm:
        return needs
    answers = [answer for answer in words.values() if answer is not None]
    if not any(wrong(answer) for answer in answers):
        return needs
    opinions = confirm + (len(set(answers)) > 1)
    return max(needs, min(confirm + 1, opinions + len(words) - len(answers)))


def lacking(words: Mapping[str, str | None], needs: int, confirm: int, wrong: Callable[[str], bool]) -> int:
    """How many annotators are still to speak of a task; none where its truth has arrived by itself."""
    if TRUTH in words:
        return 0
    return max(0, wanted(words, needs, confirm, wrong) - len(words))
