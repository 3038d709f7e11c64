"""The words of a statement without its markup."""

from __future__ import annotations

import re

_LINK = re.compile(
    r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\(\s*<?(?:[^()\s]|\([^()]*\))*>?\s*\)|\[[^\[\]]*\])"
)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
# Up to the next mark that may end it, so that a mark without an end is passed over at once.
EMPHASIS = re.compile(
    r"(?<!\w)(\*{1,3})(?=\S)((?:[^*]++|(?<=\w)\*(?=\w))+)(?<=\S)\1(?!\w)"
    r"|(?<!\w)(_{1,3})(?=\S)((?:[^_]++|(?<=\w)_(?=\w))+)(?<=\S)\3(?!\w)"
)
# "**bold with *italics* in it**"
_MAX_NESTED = 3
_EMPTY_BRACKETS = re.compile(r"[(（\[][\s,;<>]*[)）\]]|<\s*>")


def without_markup(text: str) -> str:
    """Return a text without links, tags, emphasis, and the brackets and spaces that they leave."""
    text = _TAG.sub("", _LINK.sub(r"\1", text))
    for _ in range(_MAX_NESTED):
        text = EMPHASIS.sub(r"\2\4", text)
    text = _EMPTY_BRACKETS.sub("", text)
    text = re.sub(r"(?:\s*,)+\s*(?=[.;:!?])", "", " ".join(text.split()))
    return re.sub(r"\s+([.,;:!?])(?!\d)", r"\1", text).strip(" |")
