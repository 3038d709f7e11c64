"""Titles that are the same, and titles that are not."""

import pytest

from mind2web2.api_tools.tool_arxiv import normalise_title


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mind2Web-2: Evaluating  Search", "mind2web 2 evaluating\nsearch"),
        (
            r"On $\alpha$-divergence in $\mathcal{O}(n\log n)$",
            "On \N{GREEK SMALL LETTER ALPHA}-Divergence in O(n log n)",
        ),
        (r"G\"odel, Poincar\'e, {\v S}koda", "G\u00f6del, Poincar\u00e9, \u0160koda"),
        (r"\textbf{Bold} \emph{claims}", "Bold claims"),
        (r"$\varepsilon$-nets", "\N{GREEK SMALL LETTER EPSILON} nets"),
        ("Pre-training", "Pretraining"),
    ],
)
def test_spellings_of_one_title_agree(one, other):
    """Case, white space, punctuation, accents and LaTeX make no difference."""
    assert normalise_title(one) == normalise_title(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Gemini 1.5", "Gemini 15"),
        ("C++ explained", "C explained"),
        ("A survey", "A survey II"),
        ("Llama 2 7B", "Llama 27B"),
    ],
)
def test_different_titles_differ(one, other):
    """What tells two papers apart is kept."""
    assert normalise_title(one) != normalise_title(other)
