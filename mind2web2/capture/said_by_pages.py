"""Signs in the words of a page or title, found by the lists in ``phrases/``."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import unquote

# Behind other words than a number, a colon leads to what the page is about.
_DIVIDERS = re.compile(r"\s*(?:[|·•»\u2013\u2014]|(?<=\d):|\s-\s)\s*|(?<=[.!?])\s+")
_MARKUP = re.compile(r"\]\([^()\s]*\)|[#*_`>\[\]\\|]+")
_ENDS = " .!?…"
# "Page not found error when saving" is somebody's question, and no error page.
_TALK_OF_IT = re.compile(
    r"['\"”»]?\s+(?:errors?|issues?|problems?|bugs?|messages?|prompts?|loops?|pop-?ups?)\s+\w"
)
# Words around the phrase that names the error.
_FILLER = re.compile("404|error|http|sorry|oops|we|the|this|that|is|was|were|not|be|found")
_MAX_OTHER_WORDS = 2


def plain(text: str) -> str:
    """Return a text without markup, in lower case and on one line."""
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")
    return " ".join(_MARKUP.sub(" ", text).lower().split())


@cache
def phrases(name: str) -> tuple[str, ...]:
    """Return the phrases in ``phrases/<name>.txt``, in the form for comparison with pages."""
    text = files("mind2web2.capture").joinpath("phrases", f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("# "))


def contains_one(text: str, wanted: Iterable[str]) -> bool:
    """Tell whether a plain text says one of these, and does not merely talk of a page that does."""
    return any(
        not _TALK_OF_IT.match(text, place.end())
        for phrase in wanted
        if phrase in text
        for place in re.finditer(re.escape(phrase), text)
    )


def name_among(title: str, names: Iterable[str]) -> str | None:
    """Return the part of a plain title, between dividers, that is one of these names."""
    known = {name.strip(_ENDS) for name in names}
    return next((part for part in _title_parts(title) if part in known), None)


def part_that_says(title: str, wanted: Iterable[str]) -> str | None:
    """Return the part of a plain title that says one of these and little else."""
    wanted = tuple(wanted)
    for part in _title_parts(title):
        for phrase in wanted:
            others = part.replace(phrase, " ", 1)
            words = {word for word in re.findall(r"\w+", others) if not _FILLER.fullmatch(word)}
            if others != part and len(words) <= _MAX_OTHER_WORDS:
                return part
    return None


def names_something(part: str, title: str, path: str) -> bool:
    """Tell whether words in a title are the subject of the page, by its address or title."""
    words = set(re.findall(r"\w+", part))
    in_path = set(re.findall(r"[^\W_]+", plain(unquote(path).replace("_", " "))))
    # A number may be anything's, and "Introuvable (2011)" is a film.
    is_in_path = words <= in_path and words != {"404"}
    return is_in_path or any(other.startswith(f"{part} (") for other in _title_parts(title))


def _title_parts(title: str) -> Iterator[str]:
    return (part.strip(_ENDS) for part in (title, *_DIVIDERS.split(title)))


class Vendor(NamedTuple):
    """How one vendor of bot protection is known.

    Args:
        titles: beginnings of the titles of its interstitials.
        phrases: of its interstitials.
        marks: ids, classes and addresses that only its interstitials have; ordinary pages of its
            customers have other ones.
    """

    name: str
    titles: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


@cache
def vendors() -> tuple[Vendor, ...]:
    """Return the vendors in ``phrases/bot_protection.json``."""
    text = (
        files("mind2web2.capture")
        .joinpath("phrases", "bot_protection.json")
        .read_text(encoding="utf-8")
    )
    parts = ("titles", "phrases", "marks")
    return tuple(
        Vendor(known["name"], *(tuple(known.get(part, ())) for part in parts))
        for known in json.loads(text)
    )
