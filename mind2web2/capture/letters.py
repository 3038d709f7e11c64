"""The scripts of a page's letters, and whether the machine has a font for each."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

from mind2web2.capture.models import Trouble

log = logging.getLogger(__name__)

EMOJI = "Emoji"
# One letter of each script that pages often use; the browser looks for their fonts at its start.
COMMON_LETTERS = "aяع한あ中कกא😀"
# A page that only names a few words in a script keeps its picture.
_SHARE_MISSED = 0.02
_PACKAGES = {EMOJI: "fonts-noto-color-emoji"} | dict.fromkeys(
    ("Bopomofo", "Chinese", "Hangul", "Hiragana", "Katakana"), "fonts-noto-cjk"
)
_OTHER_PACKAGE = "fonts-noto-core"


def missing_letters(text: str, scripts: dict[str, bool]) -> Trouble | None:
    """Return the trouble that a picture shows boxes in place of letters."""
    by_drawn: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for name, letters in letters_by_script(text).items():
        by_drawn[scripts.get(name, True)] += letters
    missing = missing_scripts(by_drawn[False], by_drawn[True])
    if not missing:
        return None
    return Trouble(kind="missing_letters", detail=no_font_for(missing))


def missing_scripts(missing: Counter[str], drawn: Counter[str]) -> tuple[str, ...]:
    """Return the scripts of letters that could not be drawn, if these are more than a few."""
    counts = {name: letters.total() for name, letters in letters_by_script(missing).items()}
    others = sum(letters.total() for letters in letters_by_script(drawn).values())
    total = sum(counts.values())
    return tuple(sorted(counts)) if total > _SHARE_MISSED * (total + others) else ()


def no_font_for(scripts: Iterable[str]) -> str:
    """Say which scripts have no font, and which packages bring one."""
    names = sorted(scripts)
    packages = {_PACKAGES.get(name, _OTHER_PACKAGE) for name in names}
    return (
        f"this machine has no font for {', '.join(names)} "
        f"(Debian: apt-get install {' '.join(sorted(packages))})"
    )


@cache
def warn_of_missing_fonts(scripts: tuple[str, ...]) -> None:
    """Say once which common scripts have no font."""
    log.warning("%s; a page in such letters is stored without its picture", no_font_for(scripts))


def letters_by_script(text: str | Counter[str]) -> dict[str, Counter[str]]:
    """Return how often each letter occurs in a text, by the script that it belongs to."""
    letters: dict[str, Counter[str]] = {}
    for character, count in Counter(text).items():
        if name := _script_of(character):
            letters.setdefault(name, Counter())[character] = count
    return letters


def _script_of(character: str) -> str | None:
    """Return the script of a letter, which its Unicode name begins with.

    ``None`` for another character.
    """
    category = unicodedata.category(character)
    if category == "So" and character >= "\U0001f300":
        return EMOJI
    if category not in ("Ll", "Lo", "Lt", "Lu"):
        return None
    word = unicodedata.name(character, "unknown").split()[0]
    return "Chinese" if word == "CJK" else word.capitalize()
