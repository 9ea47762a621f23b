"""Twelve questions by name, Q1 to Q12, that can be asked of any space of three perturbations or more.

They stand for the twelve aggregate queries of TestifAI's evaluation in kind: one severe perturbation, two at once,
either, orders, sums, ranges and quality. The wording is opmon's own, because the paper's queries name the perturbations
of its own data sets.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMED: Mapping[str, str] = {
    "Q1": "P1 >= 4",
    "Q2": "P1 >= 3 and P2 >= 3",
    "Q3": "P1 > 2 or (P2 == 5 and P3 == 1)",
    "Q4": "order == 2",
    "Q5": "order >= 3",
    "Q6": "severity_sum <= 6",
    "Q7": "severity_sum >= 10",
    "Q8": "1 <= P1 <= 2 and 1 <= P2 <= 2 and 1 <= P3 <= 2",
    "Q9": "P1 == 5 or P2 == 5 or P3 == 5",
    "Q10": "not (P1 > 3 or P2 > 3 or P3 > 3)",
    "Q11": "order >= 2 and severity_sum in {5, 6, 7}",
    "Q12": "P1 >= 1 and P2 >= 1 and P3 >= 1 and not P1 == P2",
}


def question(text: str) -> str:
    """The text of a question by name, or the text itself.

    >>> question("q4")
    'order == 2'
    """
    return NAMED.get(text.strip().upper(), text)
