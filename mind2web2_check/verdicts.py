"""The verdicts of a check on each claim and source, read from the run's result."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, computed_field

from mind2web2.plugin import (
    ResultFile,
    WrittenNode,
)
from mind2web2_check.claims import StatementClaims
from mind2web2_check.rubric import CLAIMS, leaf_id, page_address
from mind2web2_check.statements import ReadReport, Statement

Verdict = Literal[
    "supported",
    "contradicted",
    "qualified",
    "not judged",
    "not there",
    "page unavailable",
    "no source given",
]
# A claim with several sources gets the first of these verdicts that any of them gives.
ORDER: tuple[Verdict, ...] = get_args(Verdict)
# The judge is asked to begin so (rubric.py).
_QUALIFIED = re.compile(r"^[\s*\"]*QUALIFIED\b[\s*\":.,-]*")
Depth = Literal["full text", "abstract", "stand-in", "nothing"]
_ABSTRACT = re.compile(
    r"//(?:www\.)?(?:pubmed\.ncbi|arxiv\.org/abs/|europepmc\.org/article/med/|papers\.ssrn|clinicaltrials)"
    r"|/(?:doi/)?abs(?:tract)?s?(?:/|$)|[./]abstract$",
    re.IGNORECASE,
)


class SourceVerdict(BaseModel):
    """The verdict of one page on a claim.

    Args:
        source: as the report writes it.
        page: the address that was read.
        quote: the passage that decided; ``None`` where none did.
        quote_match: where the judge quotes it exactly (``found``), nearly (``approximate``) or
            without its being on the page (``not_found``).
        reason: the judge's, or why the page is unavailable, or why it was not judged.
        depth: how much of the source was read: its page, only an abstract by the address, or a
            copy, landing page or other stand-in.
        check: what the judge was shown of the page, and its votes, as the viewer has them;
            ``None`` if the page was not judged.
    """

    source: str
    page: str
    verdict: Verdict
    quote: str | None = None
    quote_match: str | None = None
    reason: str = ""
    leaf: str = ""
    depth: Depth = "nothing"
    check: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)


# What a writer can do about each verdict.
_CHANGES: Mapping[Verdict, str] = {
    "supported": "",
    "contradicted": "Correct the claim by the quotation, or cite a page that says it.",
    "qualified": "Add the condition, the limit or the degree that the quotation has.",
    "not judged": "Not verified: run the check again, which continues from here.",
    "not there": "Cite a page that says it, or remove the claim.",
    "page unavailable": "Not verified: cite a page that can be opened and says it.",
    "no source given": "Not verified: cite a page that says it, or remove the claim.",
}


class ClaimVerdict(BaseModel):
    """A claim, and what its sources say about it."""

    claim: str
    verdict: Verdict
    sources: list[SourceVerdict]

    @computed_field  # type: ignore[prop-decorator] # how the library's users write it
    @property
    def change(self) -> str:
        """What to change in the report; empty if nothing."""
        return _CHANGES[self.verdict]


class StatementVerdict(BaseModel):
    """A statement of the report with its claims.

    Args:
        checkable: it needs a source.
    """

    text: str
    start: int
    end: int
    marks: list[str]
    checkable: bool
    verdict: Verdict
    claims: list[ClaimVerdict]

    @property
    def sources(self) -> list[SourceVerdict]:
        """Return what the pages say about all its claims."""
        return [source for claim in self.claims for source in claim.sources]


def first_of(verdicts: Iterator[Verdict]) -> Verdict:
    """Return the verdict on a claim from those of its sources."""
    return min(verdicts, key=ORDER.index, default="no source given")


def worst_of(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on a statement from those on its claims.

    The statement is supported if all of its claims are.
    """
    worst_first = (*ORDER[1:], ORDER[0])
    return min(verdicts, key=worst_first.index, default=ORDER[-1])


def verdicts_of(
    report: ReadReport,
    result: ResultFile,
    missing: Collection[str] = (),
    why: str = "",
) -> list[StatementVerdict]:
    """Return the verdicts on all statements of a report; by an empty result none is judged.

    Args:
        missing: the judgments' keys and the pages' addresses that a check that was stopped lacks.
        why: why it was stopped.
    """
    leaves = {leaf.id: leaf for leaf in result.leaves()}
    entries = _entries(result)
    verdict_of = partial(_source, leaves, frozenset(missing), why)
    return [
        _statement(number, statement, entries.get(number), verdict_of)
        for number, statement in enumerate(report.statements)
    ]


class _Claims(BaseModel):
    statements: tuple[StatementClaims, ...] = ()


def _entries(result: ResultFile) -> dict[int, StatementClaims]:
    found = _Claims.model_validate(dict(result.info_entries()).get(CLAIMS) or {})
    return {entry.number: entry for entry in found.statements}


def _statement(
    number: int,
    statement: Statement,
    entry: StatementClaims | None,
    verdict_of: Callable[[str, str], SourceVerdict],
) -> StatementVerdict:
    entry = entry or StatementClaims(number=number, claims=[statement.said])
    claims = []
    for claim_number, claim in enumerate(entry.claims):
        sources = [
            verdict_of(source, leaf_id(number, claim_number, position))
            for position, source in enumerate(statement.sources)
        ]
        verdict = first_of(each.verdict for each in sources)
        claims.append(ClaimVerdict(claim=claim, verdict=verdict, sources=sources))
    return StatementVerdict(
        text=statement.text,
        start=statement.start,
        end=statement.end,
        marks=statement.marks,
        checkable=entry.checkable,
        verdict=worst_of([claim.verdict for claim in claims]),
        claims=claims,
    )


def _source(
    leaves: Mapping[str, WrittenNode], missing: frozenset[str], why: str, source: str, name: str
) -> SourceVerdict:
    leaf = leaves.get(name)
    found = SourceVerdict(
        source=source, page=page_address(source), verdict="not judged", reason=why, leaf=name
    )
    if leaf is None:
        return found
    if not leaf.grounds.pages:
        unread = {"verdict": "page unavailable", "reason": leaf.grounds.reason}
        return found.model_copy(update=unread)
    check = leaf.grounds.pages[-1]
    if not missing.isdisjoint([check.url, *(vote.judgment for vote in check.votes)]):
        return found
    return found.model_copy(update=_of_page(leaf))


# Signs that a capture shows something else than the page: silence of such a page says nothing.
_HTTP_ERROR = "http_error"
_UNREADABLE = {
    _HTTP_ERROR: "dead: the server answers with an error",
    "refusal": "walled: the server refuses to show the page",
    "challenge": "walled: a robot check",
    "consent_wall": "walled: a request for consent",
    "login_wall": "walled: a login",
    "soft_404": "dead: the page says that it does not exist",
    "empty_page": "walled: the page shows hardly any text",
}


def _of_page(leaf: WrittenNode) -> dict[str, object]:
    check = leaf.grounds.pages[-1]
    found: dict[str, object] = {"page": check.url, "check": check.model_dump(mode="json")}
    unreadable = _unreadable(leaf)
    if unreadable is not None:
        return found | {"verdict": "page unavailable", "reason": unreadable}
    votes = [vote for vote in check.votes if vote.supported is (check.outcome == "supported")]
    # The first one that quotes the page decides.
    decisive = max(votes, key=attrgetter("quotes_page"))
    return found | {
        "verdict": _verdict(leaf),
        "quote": decisive.quote and decisive.quote.text,
        "quote_match": decisive.quote and decisive.quote.match,
        "reason": _QUALIFIED.sub("", decisive.reasoning),
        "depth": "abstract" if _ABSTRACT.search(check.url) else "full text",
    }


def _unreadable(leaf: WrittenNode) -> str | None:
    """Return why a page says nothing about a claim; ``None`` if it was read."""
    check = leaf.grounds.pages[-1]
    if check.outcome == "unavailable":
        return check.reason
    kinds = check.shown.troubles
    is_used = check.outcome == "supported" or any(vote.quotes_page for vote in check.votes)
    # Other signs may be wrong; the server's own status is not.
    return None if is_used and _HTTP_ERROR not in kinds else trouble_of(kinds)


def trouble_of(kinds: Iterable[str]) -> str | None:
    """Return the sign that a capture shows something else than its page, if it has one."""
    return next((_UNREADABLE[kind] for kind in kinds if kind in _UNREADABLE), None)


def _verdict(leaf: WrittenNode) -> Verdict:
    """Return the verdict; a page contradicts a claim if the judge quotes it against the claim."""
    check = leaf.grounds.pages[-1]
    if check.outcome == "supported":
        return "supported"
    against = [vote for vote in check.votes if not vote.supported]
    quoting = [vote for vote in against if vote.quotes_page]
    if 2 * len(quoting) <= len(against):
        return "not there"
    qualifying = [vote for vote in quoting if _QUALIFIED.match(vote.reasoning)]
    return "qualified" if 2 * len(qualifying) > len(quoting) else "contradicted"
