"""Unicode text: lone surrogates found and replaced."""

from __future__ import annotations


def is_unicode_text(text: str) -> bool:
    """Tell whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, and pairs of them as the character they mean."""
    if is_unicode_text(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
