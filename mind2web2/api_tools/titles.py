"""Titles of papers, compared as people would: without case, accents, punctuation, markup."""

from __future__ import annotations

import re
import unicodedata

_COMMAND = re.compile(r"\\([a-zA-Z]+)\s*")
_ACCENT = re.compile(r"\\[\"'`^~=.]|\\[cuvHdbrk](?=\s|\{)")
# Commands that shape what follows, in contrast to those that are symbols themselves, such as \alpha.
_SHAPING = re.compile(
    r"(?:math|text)?(?:rm|it|bf|sf|tt|sc|bb|cal|frak|scr)"
    r"|em|emph|text|bm|boldsymbol|operatorname|ensuremath|left|right|[mh]box"
)
_MARKUP = re.compile(r"[\\${}]")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w+#]+(?=\d)")
_PUNCTUATION = re.compile(r"[^\w+# ]|_")


def normalise_title(title: str) -> str:
    """Return what two spellings of one title have in common.

    ``Pre-Training`` and ``pretraining`` agree, and a Greek letter with its LaTeX command; but not ``1.5``
    and ``15``, nor ``C++`` and ``C``.
    """
    text = unicodedata.normalize("NFKD", _without_commands(title, shaping=""))
    text = "".join(_spell(character) for character in text).casefold()
    text = _PUNCTUATION.sub("", _BETWEEN_DIGITS.sub(" ", text))
    # White space counts between digits only: "Mind2Web 2" is "Mind2Web-2" and "Mind2Web2" alike.
    return re.sub(r"(?<!\d) | (?!\d)", "", text)


def title_words(title: str) -> list[str]:
    """Return the words of a title as a search engine would index them, without markup."""
    return re.findall(r"\w+", re.sub(r"[${}]", "", _without_commands(title, shaping=" ")))


def plain_words(title: str) -> list[str]:
    """Return the words that are written alike wherever a title is: ASCII, apart from all markup."""
    tokens = re.split(r"[\s-]+", title)
    return re.findall(
        r"\w+", " ".join(token for token in tokens if token.isascii() and not _MARKUP.search(token))
    )


def _without_commands(title: str, shaping: str) -> str:
    """Replace LaTeX's commands by their names, such as alpha, and those that only shape by ``shaping``."""

    def replacement(match: re.Match[str]) -> str:
        return shaping if _SHAPING.fullmatch(match[1]) else match[1].removeprefix("var")

    return _COMMAND.sub(replacement, _ACCENT.sub("", title))


def _spell(character: str) -> str:
    """Return a Greek letter's name, nothing for a combining accent, any other character as it is."""
    if unicodedata.combining(character):
        return ""
    name = unicodedata.name(character, "")
    return name.rsplit(" ", 1)[-1].lower() if name.startswith("GREEK ") and " LETTER " in name else character
