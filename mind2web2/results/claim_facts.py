"""How far the verdicts of a result can be relied on, leaf by leaf; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from mind2web2.rubric.verdicts import (
    Evidence,
    ExtractionRecord,
    PageCheck,
    PageShown,
    QuoteMatch,
)
from mind2web2.rubric.written_tree import WrittenNode

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
    return leaf.grounds.decided_by in _OF_CLAIMS


def claim_facts(leaf: WrittenNode) -> ClaimFacts:
    """Return how far a leaf's verdict can be relied on."""
    evidence = leaf.grounds
    is_voted = is_split = is_declined = False
    quotes: list[QuoteMatch] = []
    # Plain loops: a benchmark has tens of thousands of leaves.
    for votes in evidence.vote_groups():
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
    reservations: set[Reservation] = set()
    if evidence.decided_by == "error":
        reservations.add("error")
    if evidence.flags:
        reservations.add("flagged")
    for check in _decisive(evidence.pages):
        reservations |= _of_page(check.shown)
    return reservations


def _of_page(shown: PageShown) -> set[Reservation]:
    """Return the reservations about what the judge was shown of a page."""
    reservations: set[Reservation] = set()
    if shown.troubles:
        reservations.add("suspect_page")
    if shown.flags:
        reservations.add("flagged")
    return reservations


def _decisive(checks: Iterable[PageCheck]) -> list[PageCheck]:
    """Return the check of the supporting page, else those of all pages."""
    shown = [check for check in checks if check.page is not None]
    return [check for check in shown if check.outcome == "supported"] or shown


def extraction_reservations(record: ExtractionRecord) -> frozenset[Reservation]:
    """Return the reasons not to rely on an extraction."""
    reservations = _of_page(record.shown)
    if record.unavailable:
        reservations.add("page_not_had")
    if record.declined:
        reservations.add("declined")
    return frozenset(reservations)
