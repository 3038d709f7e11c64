"""Flags on passages that look as if they were written for the judge.

A flag changes no verdict. The patterns run over readable text (lower case) and ask for words of
command beside words of judging: many ordinary pages state that a claim is true, some rate claims,
and a few explain which instructions to ignore.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from urllib.parse import unquote

from mind2web2.rubric.verdicts import Flag, FlagKind
from mind2web2.utils.invisible_text import (
    hidden_runs,
    make_visible,
    read_selectors,
    read_tags,
    without_unseen,
)
from mind2web2.utils.text import cut

_EXCERPT_CHARS = 160
_BEFORE_SIGN_CHARS = 40
_BEFORE_ANCHOR_CHARS = 300
_AFTER_ANCHOR_CHARS = 900
# A regular expression holds the interpreter's lock until it ends.
_LONGEST_WINDOW_CHARS = 20_000
_NORMALIZED_AT_ONCE_CHARS = 20_000
# Fewer invisible characters are left of an emoji flag, a copied text or padding.
_FEWEST_HIDDEN = 8
_FEWEST_PLAIN_HIDDEN = 16
_LONGEST_PERIOD = 4
_RIGHT_TO_LEFT_OVERRIDE = "\u202e"

# Abbreviations in the patterns below. A blank is last: any characters that may stand between two
# words, punctuation and Markdown's signs included; so words of their own have bounds and no
# underscores.
_STANDS_FOR = {
    "CLAIMED": (
        r"\b(?:claims?|verdicts?|results?|answers?|statements?)\b.{0,60}?\b(?:supported|true|verified)\b"
    ),
    "BLOCK": r"(?:task|answer|page\saddress|page|claim|extra\sinstruction|what\sto\sextract|problem)",
    "EARLIER": r"(?:previous|prior|earlier|preceding|above|foregoing|former|initial|original)",
    "ORDERS": r"(?:instruction|prompt|directive|guideline)s?",
    "READER": (
        r"(?:llms?|(?:large )?language models?|ai|ai "
        r"(?:models?|agents?|assistants?|judges?|systems?|readers?"
        r"|evaluators?|graders?|reviewers?)|(?:llm|automated|automatic) "
        r"(?:judges?|graders?|evaluators?"
        r"|fact checkers?))"
    ),
    "YES": r"(?:(?:fully|clearly|always) )?(?:supported|true|verified|correct|passed)",
    "NEAR": r".{0,250}?",
    "WORD": r"[^\W_]{1,20}",
    " ": r"[\W_]{1,6}",
}

_SIGNS: tuple[tuple[FlagKind, str], ...] = (
    (
        "instruction",
        r"\b(?:ignore|disregard|forget|override|overwrite|bypass)"
        r" (?:(?:all|any|every|the|your|of|these|my) ){0,4}EARLIER (?:WORD ){0,2}ORDERS\b",
    ),
    (
        "instruction",
        r"\b(?:ignore|disregard|forget|override|bypass) (?:(?:all|any|of) ){0,2}(?:your|the system)"
        r" (?:WORD ){0,2}ORDERS\b",
    ),
    (
        "instruction",
        r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what) (?:WORD ){0,4}?"
        r"(?:above|before|told)\bNEARCLAIMED",
    ),
    (
        "instruction",
        r"\b(?:note|message|instructions?|attention|notice|memo|hint|dear|hello|hi)"
        r" (?:(?:to|for|all|any|the) ){0,3}READER\bNEAR(?:CLAIMED|\bas YES\b|\bresult true\b)",
    ),
    (
        "instruction",
        r"\b(?:note|message|instructions?|attention|notice|memo|dear|hello) "
        r"(?:(?:to|for|all|any|the) ){0,3}"
        r"(?:judge|grader|evaluator)s?\bNEAR\b(?:supported|(?:claims?|statements?) (?:is|are|as) "
        r"YES)\b",
    ),
    (
        "instruction",
        r"\b(?:as an? (?:WORD )?(?:READER|judge|grader|evaluator) you"
        r"|you are (?:now )?(?:(?:an?|the) )?(?:WORD )?(?:READER|judge|grader|evaluator))\b"
        r".{0,40}?\b(?:must|should|always|please|only)\b.{0,120}?(?:CLAIMED|\bas YES\b)",
    ),
    (
        "instruction",
        r"\b(?:mark|judge|rate|score|treat|return|reply|respond|output|set|answer)"
        r" (?:(?:this|the|every|all|each|any|that|these) "
        r"){0,3}(?:claims?|verdicts?|results?|everything)"
        r" (?:WORD ){0,4}?(?:as|to) YES\b(?! (?:or|and|nor|refuted|false|not|if|when))",
    ),
    (
        "instruction",
        r"\b(?:page|source|document|article)s? (?:WORD )?(?:support|confirm|verif)[a-z]{0,3}"
        r" (?:every|all|any|each) (?:WORD ){0,2}claims?\b",
    ),
    # A single occurrence is common on pages of fact checkers.
    ("instruction", r"(?:\bclaim is YES\b.{0,12}?){10}"),
    (
        "forged delimiter",
        r"<<\s*(?:end\sof\s+)?BLOCK\s+[0-9a-f.\u2026]{8,}\s*>>|<<\s*end\sof\s+BLOCK[^<>\n]{0,40}>>",
    ),
    (
        "forged delimiter",
        r"\bend of (?:the )?(?:page|answer|document|untrusted (?:text|content|material))\b"
        r"NEAR\b(?:(?:new|real) instructions?|system (?:message|prompt)|judge|verdict)\b",
    ),
    (
        "chat template",
        r"<\|\s*(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id"
        r"|begin_of_text)\s*\|>|<</?sys>>|<(?:start|end)_of_turn>|\[/?inst\].{0,400}?\[/?inst\]",
    ),
    (
        "fake system message",
        r"(?:^|[\n>])[\s*#\[(<_-]{0,6}(?:system|developer)(?:\s(?:message|prompt|note|notice|override|update"
        r"|instruction)s?)?[\s*\])>_]{0,4}:NEAR(?:CLAIMED|\bjudges?\b|\bEARLIER ORDERS)",
    ),
    (
        "fake system message",
        r"[\"']role[\"']\s*:\s*[\"'](?:system|developer)[\"'].{0,40}?[\"']content[\"']",
    ),
    (
        "finished verdict",
        r"\breasoning[\"']?\s{0,4}[:=].{0,600}?\bresult[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:true|false)\b"
        r"|\bresult[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:true|false)\b.{0,200}?\breasoning[\"']?\s{0,4}[:=]",
    ),
    (
        "finished verdict",
        r"[\"'](?:verdict|(?:claim_)?supported)[\"']\s*:\s*[\"']?(?:true|supported|passed|yes)\b",
    ),
)

# An address does not speak to a reader: there a bare assertion is enough.
_IN_ADDRESSES = r"\bclaim (?:is )?YES\b|\bresult true\b|\bverdict YES\b"

# The patterns are searched around these only; most pages have few of them.
_ANCHORS = (
    "<<",
    "<|",
    "</",
    "[inst",
    "_of_turn>",
    "end of ",
    "system",
    "developer",
    "role",
    "reasoning",
    "verdict",
    "supported",
    "judge",
    "judgment",
    "ignor",
    "disregard",
    "forget",
    "overrid",
    "overwrite",
    "bypass",
    "llm",
    "language model",
    "grader",
    "evaluator",
    "instruction",
    "claim",
    "result",
    " ai ",
    " ai:",
    " ai,",
)


def flags_of(text: str) -> tuple[Flag, ...]:
    """Return the flags of a text, the first of each kind; most texts have none."""
    return one_a_kind((*_of_characters(text), *_of_words(readable(text))))


def address_flags(url: str) -> tuple[Flag, ...]:
    """Return the flags of a page's address."""
    text = readable(unquote(url).replace("+", " "))
    sign = _address_sign().search(text)
    asserted = [] if sign is None else [_flag("instruction", text, sign.start())]
    return one_a_kind((*asserted, *_of_words(text), *flags_of(url)))


def readable(text: str) -> str:
    """Return a text in lower case, with escapes and styled letters as plain ones."""
    plain = without_unseen(text)
    if "%20" in plain:
        plain = unquote(plain)
    if "&#" in plain or "&lt;" in plain:
        plain = html.unescape(plain)
    return plain.lower() if plain.isascii() else "".join(_normalize(plain)).lower()


def one_a_kind(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the first flag of each kind."""
    by_kind: dict[str, Flag] = {}
    for flag in flags:
        by_kind.setdefault(flag.kind, flag)
    return tuple(by_kind.values())


def _normalize(text: str) -> Iterator[str]:
    for start in range(0, len(text), _NORMALIZED_AT_ONCE_CHARS):
        piece = text[start : start + _NORMALIZED_AT_ONCE_CHARS]
        normalized = unicodedata.normalize("NFKC", piece)
        # Some characters stand for whole phrases; a page of them stays as it is.
        yield normalized if len(normalized) <= 2 * len(piece) else piece


def _of_characters(text: str) -> Iterator[Flag]:
    runs = hidden_runs(text)
    written = "".join(read_tags(run) or read_selectors(run) for run in runs)
    if len(written) >= _FEWEST_HIDDEN:
        yield Flag(kind="invisible text", excerpt=_excerpt(written))
    for run in runs:
        if len(run) >= _FEWEST_PLAIN_HIDDEN and not _is_padding(run):
            yield Flag(
                kind="invisible text",
                excerpt=f"{len(run)} invisible characters in a row",
            )
            break
    if _RIGHT_TO_LEFT_OVERRIDE in text:
        yield _flag("reversed text", text, text.index(_RIGHT_TO_LEFT_OVERRIDE))


def _is_padding(run: str) -> bool:
    """Tell whether a run repeats a few characters and so carries no message."""
    return any(run[period:] == run[:-period] for period in range(1, _LONGEST_PERIOD + 1))


def _of_words(text: str) -> Iterator[Flag]:
    for window in _windows(text):
        for kind, sign in _sign_patterns():
            if place := sign.search(window):
                yield _flag(kind, window, place.start())


def _windows(text: str) -> Iterator[str]:
    """Yield the surroundings of all anchors, joined where they touch."""
    spans = []
    for anchor in _ANCHORS:
        at = text.find(anchor)
        while at != -1:
            spans.append((max(0, at - _BEFORE_ANCHOR_CHARS), at + _AFTER_ANCHOR_CHARS))
            at = text.find(anchor, at + _BEFORE_ANCHOR_CHARS)
    start = end = 0
    for first, last in sorted(spans):
        if first > end or last - start > _LONGEST_WINDOW_CHARS:
            yield text[start:end]
            start = first
        end = max(end, last)
    yield text[start:end]


def _flag(kind: FlagKind, text: str, at: int) -> Flag:
    return Flag(kind=kind, excerpt=_excerpt(text[max(0, at - _BEFORE_SIGN_CHARS) :]))


def _excerpt(text: str) -> str:
    """Return the beginning of a text as one line that is safe to print."""
    line = " ".join(make_visible(text[:_EXCERPT_CHARS]).split())
    return cut(line, _EXCERPT_CHARS)


@cache
def _sign_patterns() -> tuple[tuple[FlagKind, re.Pattern[str]], ...]:
    return tuple((kind, _compile(sign)) for kind, sign in _SIGNS)


@cache
def _address_sign() -> re.Pattern[str]:
    return _compile(_IN_ADDRESSES)


def _compile(sign: str) -> re.Pattern[str]:
    for name, meaning in _STANDS_FOR.items():
        sign = sign.replace(name, meaning)
    return re.compile(sign, re.DOTALL)
