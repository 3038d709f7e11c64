"""arXiv identifiers and the links that carry them (https://info.arxiv.org/help/arxiv_identifier.html)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_NEW_ID = r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}"
_OLD_ID = r"[a-z]+(?:-[a-z]+)?(?:\.[a-z]{2})?/\d{2}(?:0[1-9]|1[0-2])\d{3}"
_ID = re.compile(rf"(?P<paper>{_NEW_ID}|{_OLD_ID})(?:v(?P<version>[1-9]\d*))?", re.ASCII | re.IGNORECASE)
# math.GT/0309136 and math/0309136 are one paper; arXiv itself writes the second.
_SUBJECT_CLASS = re.compile(r"\.[a-z]{2}/")
_PREFIX = re.compile(r"arxiv\s*:\s*", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z]{2,8}\.)?arxiv\.org", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArxivId:
    """A paper on arXiv, and which version of it if that is said."""

    paper: str
    version: int | None = None

    def __str__(self) -> str:
        return self.paper if self.version is None else f"{self.paper}v{self.version}"


def parse_arxiv_id(text: str) -> ArxivId | None:
    """Read ``2301.00001v2``, ``hep-th/9901001``, either with ``arXiv:``, or an arXiv link; else ``None``."""
    text = text.strip()
    if (from_link := _id_from_link(text, {"abs", "pdf", "html"})) is not None:
        return from_link
    return _match_id(_PREFIX.sub("", text, count=1))


def id_from_pdf_link(link: str) -> ArxivId | None:
    """Return the paper whose PDF the link serves, ``None`` if it is no such link."""
    return _id_from_link(link.strip(), {"pdf"})


def _id_from_link(link: str, kinds: set[str]) -> ArxivId | None:
    try:
        parts = urlsplit(link if "://" in link else f"https://{link}")
        host = parts.hostname or ""
    except ValueError:
        return None
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
