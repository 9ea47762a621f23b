from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from opmon import plugins
from opmon.errors import InputError
from opmon.robustness.perturbations.lexicon import parse_synonyms, synonyms
from opmon.robustness.perturbations.text import Contraction, Punctuation, Synonym, Typos

TEXTS = np.array(
    [
        "It's a big day for the company, which did not say what it would pay.",
        "I can't believe it is over! The market has grown quickly.",
        "",
        "Ω≈ç 漢字 🙂 no_letters 123",
    ],
    dtype=object,
)
NAMES = [name for name in plugins.names("perturbation") if name.startswith("text.")]


def apply(name: str, severity: int, seed: int = 0) -> NDArray[np.object_]:
    made = plugins.make("perturbation", name)
    return np.asarray(made.apply(TEXTS, severity, np.random.default_rng(seed)))


@pytest.mark.parametrize("name", NAMES)
def test_text_in_text_out(name: str) -> None:
    after = apply(name, 5)
    assert after.shape == TEXTS.shape
    assert all(isinstance(text, str) for text in after)
    assert after[2] == ""
    assert after[0] != TEXTS[0]


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_text(name: str) -> None:
    assert apply(name, 3).tolist() == apply(name, 3).tolist()


def test_more_edits_begin_with_the_same_ones() -> None:
    """A higher severity goes on from a lower one."""
    made = Typos()
    one = made.apply(TEXTS, 1, np.random.default_rng(5))
    two = made.apply(TEXTS, 2, np.random.default_rng(5))
    apart = sum(a != b for a, b in zip(one[0], two[0], strict=False))
    assert one[0] != two[0]
    assert apart < len(one[0])


def test_synonym_is_one_of_the_lexicon() -> None:
    texts = np.array(["Big"], dtype=object)
    made = Synonym(words={"big": ("large", "great")})
    found = {made.apply(texts, 1, np.random.default_rng(seed))[0] for seed in range(20)}
    assert found == {"Large", "Great"}


def test_contraction_goes_both_ways() -> None:
    made = Contraction(edits=(1,))
    short = made.apply(np.array(["we do not know"], dtype=object), 1, np.random.default_rng(0))[0]
    assert short == "we don't know"
    assert made.apply(np.array([short], dtype=object), 1, np.random.default_rng(0))[0] == "we do not know"


def test_punctuation_keeps_the_words() -> None:
    after = Punctuation().apply(TEXTS[:1], 5, np.random.default_rng(0))[0]
    letters = [c for c in after if c.isalpha()]
    assert letters == [c for c in TEXTS[0] if c.isalpha()]


def test_vendored_lexicon() -> None:
    words = synonyms()
    assert len(words) > 4000
    assert "not" not in words
    assert all(word not in others for word, others in words.items())


@pytest.mark.parametrize("content", ["", "# nothing", "alone"])
def test_broken_lexicon(content: str) -> None:
    with pytest.raises(InputError):
        parse_synonyms(content)
