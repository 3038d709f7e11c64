"""Text: amounts with their nouns, and lone surrogates found and replaced."""

from __future__ import annotations

_PLURALS = {"leaf": "leaves", "reply": "replies", "try": "tries"}


def counted(amount: int, noun: str) -> str:
    """Return an amount with its noun, such as ``1 task``, ``3 leaves`` or ``2 earlier results``."""
    *adjectives, last = noun.split(" ")
    if amount != 1:
        last = _PLURALS.get(last, f"{last}s")
    return " ".join([f"{amount:,}", *adjectives, last])


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
