"""The words of a statement without its markup."""

from __future__ import annotations

import re

_LINK = re.compile(
    r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\(\s*<?(?:[^()\s]|\([^()]*\))*>?\s*\)|\[[^\[\]]*\])"
)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)", re.DOTALL)
_EMPTY_BRACKETS = re.compile(r"[(（\[]\s*[,;\s]*[)）\]]")


def without_markup(text: str) -> str:
    """Return a text without links, tags, emphasis, and the brackets and spaces that they leave."""
    text = _EMPHASIS.sub(r"\2", _TAG.sub("", _LINK.sub(r"\1", text)))
    text = _EMPTY_BRACKETS.sub("", text)
    text = re.sub(r"(?:\s*,)+\s*(?=[.;:!?])", "", " ".join(text.split()))
    return re.sub(r"\s+([.,;:!?])(?!\d)", r"\1", text).strip(" |")
