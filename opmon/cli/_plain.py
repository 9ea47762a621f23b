"""Docstrings as plain text for a terminal: no markup, and formulas written with Unicode signs."""

from __future__ import annotations

import re

_SIGNS = {
    "alpha": "α", "beta": "β", "big": "", "Big": "", "cap": "∩", "chi": "χ", "cup": "∪", "delta": "δ",
    "dots": "…", "ge": "≥", "in": "∈", "infty": "∞", "int": "∫", "lambda": "λ", "ldots": "…", "le": "≤",
    "leftarrow": "←", "log": "log", "max": "max", "min": "min", "mu": "μ", "omega": "ω", "pi": "π", "prod": "∏",
    "propto": "∝", "psi": "ψ", "qquad": "  ", "quad": "  ", "rho": "ρ", "sigma": "σ", "sqrt": "√", "sum": "Σ",
    "tau": "τ", "text": "", "theta": "θ", "times": "×", "to": "→", "xi": "ξ",
}  # fmt: skip
_MARKS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303", "underline": "\u0332"}
_MARKED = re.compile(r"\\(bar|hat|tilde|underline)\s*(?:\{(\\?\w+)\}|(\\?[A-Za-z]+))")
_RAISED = re.compile(r"([_^])\{([^{}]*[^\w{}][^{}]*)\}")
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_MACRO = re.compile(r"\\([A-Za-z]+)")
_DOCTEST = re.compile(r"^\s*>>>.*?(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"^(\s*)\.\. math::[ \t]*(.*)$", re.MULTILINE)
_ROLE = re.compile(r":(\w+):`([^`]*)`")


def plain(docstring: str) -> str:
    r"""The text without markup and without its examples.

    >>> plain("Alarms at ``threshold`` (:mod:`_bound`): :math:`\\hat\\theta \\le m_{low}`.\n\n>>> 1 + 1\n2\n")
    'Alarms at `threshold` (bound): θ̂ ≤ m_low.'
    """
    text = _DOCTEST.sub("", docstring + "\n")
    text = _ROLE.sub(lambda found: formula(found[2]) if found[1] == "math" else _name(found[2]), text)
    text = _FORMULA.sub(lambda found: found[1] + "    " + found[2], text)
    text = "\n".join(formula(line) if "\\" in line else line for line in text.splitlines())
    text = text.replace("``", "`")
    text = re.sub(r"(?<![\w*])\*{1,2}([^*\n]+)\*{1,2}(?!\w)", r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def formula(latex: str) -> str:
    r"""
    >>> formula(r"\frac{z_{1-\alpha/2}}{z_c} \prod_j \big(1 + \lambda_g\big)")
    'z_(1-α/2)/z_c ∏_j (1 + λ_g)'
    """
    latex = _MARKED.sub(lambda found: (found[2] or found[3]) + _MARKS[found[1]], latex)
    latex = re.sub(r"([_^])\{(\w+)\}", r"\1\2", _RAISED.sub(r"\1(\2)", latex))
    while _FRACTION.search(latex):
        latex = _FRACTION.sub(r"\1/\2", latex)
    latex = _MACRO.sub(lambda found: _SIGNS.get(found[1], found[1]), latex)
    latex = re.sub(r"\\[,;! ]?", " " if "\\ " in latex else "", latex)
    return latex.replace("{", "").replace("}", "")


def _name(reference: str) -> str:
    """The last part of a reference: ``~opmon.types.Draw`` is Draw."""
    return reference.rpartition(".")[2].lstrip("~_")
