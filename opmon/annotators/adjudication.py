"""Which answer counts where annotators differ, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Literal, NamedTuple

from opmon.annotators.error_model import ErrorModel
from opmon.annotators.opinions import Opinion
from opmon.label_sets import members, text_of
from opmon.scales import middle
from opmon.values import canonical_number


class Ruling(NamedTuple):
    """The answer that counts, and how sure it is, from 0 to 1: the share that gave it, or its probability."""

    truth: str | None
    sure: float


NOTHING = Ruling(None, 0.0)


def by_majority(opinion: Opinion) -> Ruling:
    """The most frequent answer; of equally frequent ones the latest.

    >>> by_majority(Opinion({"ann": "7", "ben": "1", "cem": "7"}))
    Ruling(truth='7', sure=0.6666666666666666)
    """
    if opinion.truth is not None:
        return Ruling(opinion.truth, 1.0)
    counts = Counter(opinion.answers.values())
    most = max(counts.values(), default=0)
    latest = next((answer for answer in reversed(list(opinion.answers.values())) if counts[answer] == most), None)
    return Ruling(latest, most / counts.total()) if latest is not None else NOTHING


def by_expert(opinion: Opinion, experts: Sequence[str]) -> Ruling:
    """The answer of the first of the ``experts`` who gave one; where none did, the majority's.

    >>> by_expert(Opinion({"ann": "7", "ben": "1", "cem": "7"}), ["ben"])
    Ruling(truth='1', sure=1.0)
    """
    said = next((opinion.answers[name] for name in experts if name in opinion.answers), None)
    return by_majority(opinion) if said is None or opinion.truth is not None else Ruling(said, 1.0)


def by_middle(opinion: Opinion, how: Literal["mean", "median"], *, scores: bool) -> Ruling:
    """The mean or the median of scores, or of numbers.

    >>> by_middle(Opinion({"ann": "4 of 5", "ben": "0.25"}), "mean", scores=True)
    Ruling(truth='0.5', sure=0.0)
    >>> by_middle(Opinion({"ann": "7", "ben": "1", "cem": "2"}), "median", scores=False).truth
    '2'
    """
    if opinion.truth is not None or not opinion.answers:
        return by_majority(opinion)
    said = list(opinion.answers.values())
    numbers = [float(each) for each in said] if not scores else []
    truth = middle(said, how) if scores else canonical_number(fmean(numbers) if how == "mean" else median(numbers))
    return Ruling(truth, said.count(truth) / len(said))


def by_class(opinion: Opinion) -> Ruling:
    """The classes that most say, each on its own; where as many say it as not, the latest answer tells.

    >>> by_class(Opinion({"ann": '["a"]', "ben": '["a", "b"]', "cem": '["c"]'})).truth
    '["a"]'
    """
    if opinion.truth is not None or not opinion.answers:
        return by_majority(opinion)
    said = [frozenset(members(answer)) for answer in opinion.answers.values()]
    votes = Counter(name for names in said for name in names)
    kept = [name for name, count in votes.items() if 2 * count + (name in said[-1]) > len(said)]
    truth = text_of(kept)
    return Ruling(truth, said.count(frozenset(kept)) / len(said))


def by_weight(model: ErrorModel, opinions: Mapping[int, Opinion]) -> dict[int, Ruling]:
    """The likeliest truth of each input under an error model, among the answers given; ``opinions`` by its row there.

    The model's own answer can win only where somebody gave it. Where a tie is left the latest answer counts, as by
    majority.
    """
    return {row: _likeliest(model, row, opinion) for row, opinion in opinions.items()}


def _likeliest(model: ErrorModel, row: int, opinion: Opinion) -> Ruling:
    if opinion.truth is not None or not opinion.answers:
        return by_majority(opinion)
    codes = model.coded.code[row]
    said = [answer for _, answer in sorted(opinion.answers.items())]  # the order in which they were coded
    likely = {answer: float(model.truth[row, code]) for answer, code in zip(said, codes, strict=False)}
    best = max(likely.values())
    latest = next(answer for answer in reversed(list(opinion.answers.values())) if likely[answer] >= best - 1e-12)
    return Ruling(latest, best)
