"""Papers of arXiv by their identifiers and titles, however they are spelled."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from mind2web2.urls.parts import host_of, split_url

_NEW_ID = r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}"
_OLD_ID = r"[a-z]+(?:-[a-z]+)?(?:\.[a-z]{2})?/\d{2}(?:0[1-9]|1[0-2])\d{3}"
_ID = re.compile(
    rf"(?P<paper>{_NEW_ID}|{_OLD_ID})(?:v(?P<version>[1-9]\d*))?",
    re.ASCII | re.IGNORECASE,
)
# math.GT/0309136 and math/0309136 are one paper; arXiv itself writes the second.
_SUBJECT_CLASS = re.compile(r"\.[a-z]{2}/")
_PREFIX = re.compile(r"arxiv\s*:\s*", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z]{2,8}\.)?arxiv\.org", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArxivId:
    """A paper on arXiv, and its version if one is given."""

    paper: str
    version: int | None = None

    def __str__(self) -> str:
        if self.version is None:
            return self.paper
        return f"{self.paper}v{self.version}"


def parse_arxiv_id(text: str) -> ArxivId | None:
    """Read ``2301.00001v2``, ``hep-th/9901001``, either with ``arXiv:``, or an arXiv link.

    Else ``None``.
    """
    text = text.strip()
    if (from_link := _id_from_link(text, {"abs", "pdf", "html"})) is not None:
        return from_link
    return _match_id(_PREFIX.sub("", text, count=1))


def id_from_pdf_link(link: str) -> ArxivId | None:
    """Return the paper whose PDF the link serves, ``None`` if it is not such a link."""
    return _id_from_link(link.strip(), {"pdf"})


def _id_from_link(link: str, kinds: set[str]) -> ArxivId | None:
    parts = split_url(link if "://" in link else f"https://{link}")
    host = host_of(link)
    kind, _, rest = unquote(parts.path).lstrip("/").partition("/")
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host) or kind not in kinds:
        return None
    return _match_id(rest.rstrip("/").removesuffix(".pdf"))


def _match_id(text: str) -> ArxivId | None:
    match = _ID.fullmatch(text.strip())
    if match is None:
        return None
    paper = _SUBJECT_CLASS.sub("/", match["paper"].lower())
    return ArxivId(paper, int(match["version"]) if match["version"] else None)


_COMMAND = re.compile(r"\\([a-zA-Z]+)\s*")
_ACCENT = re.compile(r"\\[\"'`^~=.]|\\[cuvHdbrk](?=\s|\{)")
# Commands that shape the text after them, unlike symbols such as \alpha.
_SHAPING = re.compile(
    r"(?:math|text)?(?:rm|it|bf|sf|tt|sc|bb|cal|frak|scr)"
    r"|em|emph|text|bm|boldsymbol|operatorname|ensuremath|left|right|[mh]box"
)
_MARKUP = re.compile(r"[\\${}]")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w+#]+(?=\d)")
_PUNCTUATION = re.compile(r"[^\w+# ]|_")


def normalise_title(title: str) -> str:
    """Return the normal form of a title.

    ``Pre-Training`` and ``pretraining`` agree, and a Greek letter with its LaTeX command; but not
    ``1.5`` and ``15``, nor ``C++`` and ``C``.
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
        r"\w+",
        " ".join(token for token in tokens if token.isascii() and not _MARKUP.search(token)),
    )


def _without_commands(title: str, shaping: str) -> str:
    """Replace LaTeX's commands by their names, and those that only shape by ``shaping``."""

    def replacement(match: re.Match[str]) -> str:
        if _SHAPING.fullmatch(match[1]):
            return shaping
        return match[1].removeprefix("var")

    return _COMMAND.sub(replacement, _ACCENT.sub("", title))


def _spell(character: str) -> str:
    """Return a Greek letter's name, and other characters without their accents."""
    if unicodedata.combining(character):
        return ""
    name = unicodedata.name(character, "")
    return (
        name.rsplit(" ", 1)[-1].lower()
        if name.startswith("GREEK ") and " LETTER " in name
        else character
    )
