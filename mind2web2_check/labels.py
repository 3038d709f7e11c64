"""How marks and the labels of a list look.

Adding a form is one entry in ``LOOKS``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mind2web2_check.words import NUMBERED, SOURCE_WORD


@dataclass(frozen=True, slots=True)
class Look:
    """A pair of signs around a mark, as patterns.

    Args:
        weight: the logarithm of the odds that a number in them cites a source.
        is_sure: they have hardly another use, so a number without an entry is a lost mark.
    """

    name: str
    opening: str
    closing: str
    weight: float
    is_sure: bool = False


LOOKS = (
    Look("[^1]", r"\\?\[\s?\\?\^", r"\^?\\?\]", 9, is_sure=True),
    Look("[1]", r"\\?\[", r"\\?\]", 6, is_sure=True),
    # The page of a source, or a time.
    Look("[1:14]", r"\\?\[", r"(?<=\d):\d{1,4}\\?\]", 0),
    Look("[[1]]", r"\[\[", r"\]\]", 6),
    Look("［1］", "［", "］", 6, is_sure=True),
    Look("【1】", "【", "】", 6, is_sure=True),
    Look("〔1〕", "〔", "〕", 6, is_sure=True),
    Look("﹝1﹞", "﹝", "﹞", 6, is_sure=True),
    Look("〖1〗", "〖", "〗", 6, is_sure=True),
    Look("⟦1⟧", "⟦", "⟧", 6, is_sure=True),
    Look("⁅1⁆", "⁅", "⁆", 6, is_sure=True),
    Look("\\bibitem{1}", r"\\bibitem(?:\[[^\[\]\n]*\])?\{", r"\}", 9, is_sure=True),
    Look("\\cite{1}", r"\\cite[a-z]*\*?\{", r"\}", 9, is_sure=True),
    Look("<sup>1</sup>", r"<sup>(?:\s?\\?[\[(])?", r"(?:\\?[\])]\s?)?</sup>", 4, is_sure=True),
    Look("^1^", r"\^\[?", r"\]?\^", 3, is_sure=True),
    Look("^{1}", r"\$?\^\{", r"\}\$?", 3),
    Look("$^1$", r"\$\^", r"\$", 3),
    Look("&#91;1&#93;", "&#(?:91|x5b);", "&#(?:93|x5d);", 6, is_sure=True),
    Look("「1」", "[「『]", "[」』]", 2),
    Look("{1}", r"\{", r"\}", 2),
    Look("⟨1⟩", "[⟨〈‹<]", "[⟩〉›>]", 2),
    Look("«1»", "[«《]", "[»》]", 1),
    Look("(1)", r"\\?\(", r"\\?\)", 2),
    Look("（1）", "（", "）", 2),
    Look("1️⃣", "(?<!\\d)(?=\\d{1,3}\ufe0f?\u20e3)", "\ufe0f?\u20e3", 5),
    Look("①", "(?=[①-⓿❶-➓⓵-⓾㉑-㊿⑴-⒇])", "(?<=[①-⓿❶-➓⓵-⓾㉑-㊿⑴-⒇])", 5),
    Look("†", "(?=[†‡§¶])", "(?<=[†‡§¶])(?![†‡§¶])", 3),
    Look("*", r"(?<=[^\s*|\\(])\\?(?=\*{1,3}(?![*\w]))", r"(?<=\*)(?!\*)", 4),
    # The charge of an ion, "²⁺", begins no mark.
    Look(
        "¹",
        "(?<![⁰¹²³⁴-⁻])(?=[¹²³⁴-⁹])(?![⁰¹²³⁴-⁹]+[⁺⁻](?![⁰¹²³⁴-⁹]))",
        "(?<=[⁰¹²³⁴-⁹])(?![⁰¹²³⁴-⁻])",
        3,
        is_sure=True,
    ),
)
BY_NAME = {look.name: look for look in LOOKS}

_PAIRS = ("Ps", "Pe", "Pi", "Pf")
_SIGNS = {sign for look in LOOKS for sign in look.opening + look.closing}
# No label has these in it.
_BRACKETS = r"<>|$\n" + "".join(
    re.escape(sign) for sign in sorted(_SIGNS) if unicodedata.category(sign) in _PAIRS
)
# In "[^a,^b]" each label has its sign.
_CONTENT = rf"(?:[^{_BRACKETS}^]|(?<=[,;\s])\^){{1,120}}?"
_FIRST_SIGN = rf"(?=[{_BRACKETS}\\^&0-9①-⓿❶-➓⓵-⓾㉑-㊿⑴-⒇¹²³⁴-⁹†‡§¶*])"
_BY_LENGTH = sorted(LOOKS, key=lambda look: -len(look.name))
_ANY_LOOK = "|".join(
    rf"(?P<_{LOOKS.index(look)}>{look.opening}\s*(?P<in_{LOOKS.index(look)}>{_CONTENT})\s*{look.closing})"
    for look in _BY_LENGTH
)
IN_SIGNS = re.compile(rf"{_FIRST_SIGN}(?:{_ANY_LOOK})", re.IGNORECASE)

_SEPARATOR = re.compile(
    r"\s*[,;，、；&/]\s*(?:and\s|und\s)?|\s+(?:and|und|et|y|e|и|和)\s+|(?<=[^\W\d_]\d)\s+(?=[^\W\d_]+\d)|(?<=\d)\s+(?=[1-9]\d?(?!\d))"
)
_RANGE_SIGN = r"\s*(?:[-–—−‑~⁻]|\bto\b)\s*"
_WORD = rf"(?:{SOURCE_WORD}|see(?: also)?|cf|vgl|siehe|voir|véase|см|参见|cite)"
# "p. 12", "S. 3 ff.", "Table 2", "第12页": where in the source.
_LOCATOR = re.compile(
    rf"(?!{_WORD})(?:[^\W\d_]{{1,8}}\.|§+|p|第|(?:{'|'.join(NUMBERED)})s?)\s*[\d–-]+\s*(?:ff?\.?|[页頁章])?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    rf"(?:{_WORD}[\s.:：#_-]*){{0,2}}(?P<letters>(?:n[or]\.\s|[^\W\d_]{{1,8}}[\s_.:#-]?)?)"
    rf"(?P<first>\d{{1,4}})(?:{_RANGE_SIGN}(?:(?:{_WORD})?[\s.:：#_-]*)(?P=letters)(?P<last>\d{{1,4}}))?",
    re.IGNORECASE,
)
_KEY = re.compile(r"[^\W_][\w.:+'’-]{0,40}|[†‡§¶*]{1,3}")
MAX_RANGE = 99
_MAX_LETTERS = 2


@lru_cache(maxsize=4096)
def normal(label: str) -> str:
    """Return the one form of a label: ``Ref_2`` is ``ref2``, and ``①`` is ``1``."""
    plain = unicodedata.normalize("NFKC", label).casefold()
    ascii_digits = "".join(str(unicodedata.digit(each, each)) for each in plain)
    numbers = re.sub(r"(?<=\d)[\W_]+(?=\d)", ".", ascii_digits)
    joined = re.sub(r"(?<!\d)[\W_]+|[\W_]+(?!\d)", "", numbers) or plain
    return re.sub(r"\A0+(?=\d+\Z)", "", joined)


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that a mark names.

    Args:
        kind: ``number``, ``word`` (letters and a number) or ``key``.
    """

    names: tuple[str, ...]
    kind: str
    has_word: bool = False


@lru_cache(maxsize=4096)
def labels_in(content: str) -> Labels | None:
    """Return the labels of a mark's content such as ``1, 3-5``; ``None`` if it is none."""
    text = unicodedata.normalize("NFKC", content.replace("⁻", "-"))
    text = re.sub(
        r"\*+(?=\w)|(?<=\w)\*+|[\\^@#]|:$|(?<=\d)†.+",
        "",
        "".join(str(unicodedata.digit(each, each)) for each in text),
    )
    text = re.sub(rf"^\s*{_WORD}\s*[:：]\s*", "", text, flags=re.IGNORECASE).strip(" _()")
    names: list[str] = []
    kinds: set[str] = set()
    first, *others = _SEPARATOR.split(text)
    for part in (first, *(other for other in others if not _LOCATOR.fullmatch(other))):
        if found := _LABEL.fullmatch(part):
            names += _expanded(found)
            kinds.add("word" if found["letters"] else "number")
        elif _KEY.fullmatch(part):
            names.append(normal(part))
            kinds.add("key")
        else:
            return None
    kind = min(kinds, key=("key", "word", "number").index)
    has_word = re.match(rf"\s*{_WORD}", content, re.IGNORECASE) is not None
    return Labels(tuple(dict.fromkeys(names)), kind, has_word)


def _expanded(label: re.Match[str]) -> Iterator[str]:
    first, last = int(label["first"]), int(label["last"] or label["first"])
    numbers = range(first, last + 1) if first <= last <= first + MAX_RANGE else (first, last)
    yield from (normal(f"{label['letters']}{number}") for number in numbers)


_PLAIN_LABEL = (
    rf"(?:{SOURCE_WORD}\s?)?#?[^\W\d_]{{0,4}}\d{{1,4}}(?:\*\*|__)?\s?(?:[.)）、．:：\]]|[-–—|]\s|(?<=\*\*)\s)"
    r"|#\d{1,3}\s|[a-z](?:\*\*|__)?[.)]\s|[†‡§¶]{1,3}\s?|\\?\*{1,3}(?:\s|(?=[^\s*][^*\n]*$))|\d{1,3}\s+(?=(?-i:[^\W\da-zß-ÿ_])|[\"“‘«「《]|https?:)"
)
SIGNED_LABEL = "|".join(
    rf"{look.opening}\s*[^{_BRACKETS}\s][^{_BRACKETS}]{{0,40}}?\s*{look.closing}"
    for look in _BY_LENGTH
)
ENTRY_LABELS = re.compile(
    rf"\s*(?:\*\*|__|[*_](?=[\[【(]))?(?P<labels>(?:(?:{SIGNED_LABEL})(?!\()(?:\*\*|__|[*_])?\s*[:：.]?\s*)+"
    rf"|{_PLAIN_LABEL})(?:\*\*|__)?[:：.]?\s*",
    re.IGNORECASE,
)
LABEL_BEHIND = re.compile(
    rf"<?https?://\S+\s+({SIGNED_LABEL})\W*|[^\n]{{1,100}}?\s({SIGNED_LABEL})\s?[:：]\s*<?https?://\S+"
)


@dataclass(frozen=True, slots=True)
class EntryLabel:
    """The labels that a line of a list begins with.

    Args:
        look: of the signs around it, such as ``[1]`` or ``1.``.
        end: where the entry's words begin.
    """

    names: tuple[str, ...]
    look: str
    end: int


def entry_label(text: str, start: int, end: int) -> EntryLabel | None:
    """Return the label of a list's entry that begins there."""
    found = ENTRY_LABELS.match(text, start, end)
    if found is None:
        return None
    signed = list(IN_SIGNS.finditer(found["labels"].replace("*", "")))
    if not signed:
        names = labels_in(re.sub(r"(?<=\w)[.)）、．:：\]|*_\s–—-]+$", "", found["labels"]))
        signs = re.sub(r"[\w\s*]", "", found["labels"])
        return EntryLabel(names.names, f"1{signs[-1:]}", found.end()) if names else None
    names_found: list[str] = []
    for each in signed:
        labels = labels_in(content_of(each))
        if labels is None or not (look_of(each).is_sure or is_short(labels)):
            return None
        is_note = look_of(each).name == "[^1]"
        names_found += [f"{'^' * is_note}{name}" for name in labels.names]
    return EntryLabel(tuple(names_found), look_of(signed[0]).name, found.end())


def is_short(labels: Labels) -> bool:
    """Tell labels in signs with other uses from words in them: ``(Animals) aphids``."""
    return labels.kind != "key" or all(len(name) <= _MAX_LETTERS for name in labels.names)


def look_of(match: re.Match[str]) -> Look:
    """Return the look of a match of ``IN_SIGNS``."""
    return LOOKS[int(str(match.lastgroup)[1:])]


def content_of(match: re.Match[str]) -> str:
    """Return the words between the signs."""
    return match[f"in{match.lastgroup}"]
