"""How far the verdicts of a result can be relied on, leaf by leaf; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from mind2web2.rubric.verdicts import (
    TO_THIS_JUDGE,
    Evidence,
    ExtractionRecord,
    PageCheck,
    QuoteMatch,
)
from mind2web2.rubric.written_tree import WrittenNode, vote_groups

QUOTE_MATCHES: tuple[QuoteMatch, ...] = get_args(QuoteMatch)
Reservation = Literal["page_not_had", "suspect_page", "declined", "flagged", "error"]

# Values of ``decided_by`` of claims; a script or a prerequisite decides other leaves.
_OF_CLAIMS = ("judge", "page", "error")


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """One verdict on a claim.

    Args:
        reservations: reasons not to rely on it.
        is_voted: the judge voted more than once on the same page, or on the answer.
        is_split: those votes differ; declined ones do not count.
        quotes: for each passage that the judge quoted, whether it was found.
    """

    reservations: frozenset[Reservation]
    is_voted: bool
    is_split: bool
    quotes: tuple[QuoteMatch, ...] = ()

    @property
    def is_weak(self) -> bool:
        """Tell whether the evidence is too weak to rely on the verdict."""
        return self.is_split or "not_found" in self.quotes or bool(self.reservations - {"flagged"})


def is_claim(leaf: WrittenNode) -> bool:
    """Tell whether a leaf's claim was judged, or failed by its pages or an error."""
    return leaf.evidence is not None and leaf.evidence.decided_by in _OF_CLAIMS


def claim_facts(leaf: WrittenNode) -> ClaimFacts:
    """Return how far a leaf's verdict can be relied on."""
    evidence = leaf.evidence
    if evidence is None:
        return ClaimFacts(frozenset(), is_voted=False, is_split=False)
    is_voted = is_split = is_declined = False
    quotes: list[QuoteMatch] = []
    # Plain loops: a benchmark has tens of thousands of leaves.
    for votes in vote_groups(evidence):
        opinions = supporting = 0
        for vote in votes:
            if vote.declined:
                is_declined = True
            else:
                opinions += 1
                supporting += vote.supported
            if vote.quote is not None:
                quotes.append(vote.quote.match)
        is_voted = is_voted or opinions > 1
        is_split = is_split or 0 < supporting < opinions
    reservations = _reservations(evidence)
    # Unavailable pages and refusals count against a claim: one that passes does so without them.
    if not leaf.is_passed:
        if is_declined:
            reservations.add("declined")
        for check in evidence.pages:
            if check.outcome == "unavailable":
                reservations.add("page_not_had")
    return ClaimFacts(frozenset(reservations), is_voted, is_split, tuple(quotes))


def _reservations(evidence: Evidence) -> set[Reservation]:
    """Return the reservations about a verdict, whichever it is."""
    found: set[Reservation] = set()
    if evidence.decided_by == "error":
        found.add("error")
    if evidence.flags:
        found.add("flagged")
    for check in _decisive(evidence.pages):
        if check.page is None:
            continue
        if check.page.troubles:
            found.add("suspect_page")
        if check.page.flags:
            found.add("flagged")
    return found


def _decisive(checks: Iterable[PageCheck]) -> list[PageCheck]:
    """Return the check of the supporting page, else those of all pages."""
    shown = [check for check in checks if check.page is not None]
    return [check for check in shown if check.outcome == "supported"] or shown


def extraction_reservations(record: ExtractionRecord) -> frozenset[Reservation]:
    """Return the reasons not to rely on an extraction."""
    found: set[Reservation] = set()
    if record.unavailable:
        found.add("page_not_had")
    if record.declined:
        found.add("declined")
    if record.page is not None and record.page.troubles:
        found.add("suspect_page")
    if record.page is not None and record.page.flags:
        found.add("flagged")
    return frozenset(found)


def page_checks(leaf: WrittenNode) -> Sequence[PageCheck]:
    """Return the pages that a claim was held against."""
    return () if leaf.evidence is None else leaf.evidence.pages


def unavailable_pages(leaf: WrittenNode) -> list[str]:
    """Return the unavailable pages of a claim."""
    return [check.url for check in page_checks(leaf) if check.outcome == "unavailable"]


def decisive_troubles(leaf: WrittenNode) -> frozenset[str]:
    """Return the kinds of trouble of the pages that decided a leaf."""
    pages = [check.page for check in _decisive(page_checks(leaf))]
    return frozenset(kind for page in pages if page is not None for kind in page.troubles)


def flagged_pages(leaf: WrittenNode) -> list[str]:
    """Return the pages of a claim with passages that seem to address the judge."""
    return [check.url for check in page_checks(leaf) if check.page is not None and check.page.flags]


def is_shown_in_part(leaf: WrittenNode) -> bool:
    """Tell whether the judge got only some of the images of one of the leaf's pages."""
    pages = [check.page for check in page_checks(leaf)]
    return any(TO_THIS_JUDGE in note for page in pages if page is not None for note in page.notes)
