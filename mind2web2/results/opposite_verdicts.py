"""Leaves that say the same about the same page, and have opposite verdicts; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.facts import facts_in
from mind2web2.utils.names import name_list
from mind2web2.utils.text import counted

# Two claims with the same facts say the same if they share this part of their words.
_SAME_WORDS = 0.6
_WORD = re.compile(r"\w+")
# A claim with one of these words may say the opposite of a claim without it.
_TURNING = set(
    _WORD.findall(
        """not no never neither nor without t isn aren wasn weren doesn didn don hasn haven cannot more less
        fewer most least higher lower highest lowest larger smaller largest smallest longer shorter before
        after above below over under first last only all every any each exceed exceeds within until since
        earlier later"""
    )
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim on one page, and whether the judge found it supported there."""

    leaf: str
    claim: str
    supported: bool


@dataclass(frozen=True, slots=True)
class OppositeVerdicts:
    """Two leaves, one of which must be wrong.

    Args:
        is_same_claim: they are twins: their claims are the same text.
    """

    url: str
    passed: Statement
    failed: Statement
    is_same_claim: bool


def opposite_verdicts(leaves: Iterable[WrittenNode]) -> list[OppositeVerdicts]:
    """Return pairs of one answer's leaves with opposite verdicts on the same statement and page."""
    by_page: dict[str, list[Statement]] = defaultdict(list)
    for url, statement in _statements(leaves):
        by_page[url].append(statement)
    return [pair for url, found in by_page.items() for pair in _pairs(url, found)]


class TwinVerdicts:
    """The verdicts on claims that several answers of a task make about the same page."""

    def __init__(self) -> None:
        # By the hash of task, page and claim: the first answer and leaf of each verdict.
        self._places: dict[int, dict[bool, tuple[str, str]]] = defaultdict(dict)

    def add(self, task_id: str, answer_name: str, leaves: Iterable[WrittenNode]) -> None:
        """Add the leaves of an answer."""
        for url, statement in _statements(leaves):
            key = hash((task_id, url, *_words(statement.claim)))
            place = f"{task_id}/{answer_name}", statement.leaf
            self._places[key].setdefault(statement.supported, place)

    def line(self) -> str | None:
        """Return one line on the claims that have both verdicts; ``None`` if there are none."""
        both = [(each[True], each[False]) for each in self._places.values() if len(each) > 1]
        pairs = [
            f"{'/'.join(passed)} and {'/'.join(failed)}"
            for passed, failed in both
            if passed[0] != failed[0]
        ]
        if not pairs:
            return None
        return (
            f"{counted(len(pairs), 'claim')} about a page passed in one answer and failed in "
            f"another ({name_list(pairs)})"
        )


def _statements(leaves: Iterable[WrittenNode]) -> Iterator[tuple[str, Statement]]:
    """Yield each claim that was judged on a page, behind the page's address."""
    for leaf in leaves:
        evidence = leaf.evidence
        if evidence is None or evidence.claim is None:
            continue
        for check in evidence.pages:
            if check.outcome != "unavailable":
                is_supported = check.outcome == "supported"
                yield check.url, Statement(leaf.id, evidence.claim, is_supported)


def _pairs(url: str, statements: Iterable[Statement]) -> Iterable[OppositeVerdicts]:
    passed: list[Statement] = []
    failed: list[Statement] = []
    for each in statements:
        (passed if each.supported else failed).append(each)
    for one in passed:
        for other in failed:
            is_same_claim = _words(one.claim) == _words(other.claim)
            if is_same_claim or _say_the_same(one.claim, other.claim):
                yield OppositeVerdicts(url, one, other, is_same_claim)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _say_the_same(one: str, other: str) -> bool:
    words, others = set(_words(one)), set(_words(other))
    if (words ^ others) & _TURNING or len(words & others) < _SAME_WORDS * len(words | others):
        return False
    values = _values(one)
    return bool(values) and values == _values(other)


def _values(claim: str) -> set[str]:
    """Return the numbers, dates and names of a claim."""
    return {fact.value for fact in facts_in(claim)}
