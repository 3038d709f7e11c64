"""The evidence for a leaf's verdict, and the verdict that it implies; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mind2web2.rubric.aggregation import Outcome


def check_trials(num_trials: int) -> None:
    """Raise ``ValueError`` unless ``num_trials`` is odd and positive."""
    if type(num_trials) is not int or num_trials < 1 or num_trials % 2 == 0:
        raise ValueError(f"num_trials must be an odd number such as 3, not {num_trials!r}")


def outcome(votes: Sequence[bool], num_trials: int) -> bool | None:
    """Return the decision of the votes, ``None`` while there is none.

    Two first trials that agree settle the vote, and so does an absolute majority of ``num_trials``.
    """
    if len(votes) == 2 and votes[0] is votes[1]:
        return votes[0]
    needed = num_trials // 2 + 1
    if sum(votes) >= needed:
        return True
    if len(votes) - sum(votes) >= needed:
        return False
    return None


def trials_needed(votes: Sequence[bool], num_trials: int) -> int:
    """Return how many further trials are needed in any case, so that they can be asked together."""
    if outcome(votes, num_trials) is not None:
        return 0
    if not votes:
        return min(2, num_trials)
    return num_trials // 2 + 1 - max(sum(votes), len(votes) - sum(votes))


_VERDICTS = {True: Outcome(1.0, "passed"), False: Outcome(0.0, "failed")}


def implied_verdict(evidence: Evidence) -> Outcome | None:
    """Return the verdict that evidence comes to, ``None`` where it is the script's own."""
    if evidence.decided_by == "script":
        return None
    if evidence.decided_by == "prerequisite":
        return Outcome(0.0, "skipped")
    if evidence.decided_by in ("page", "error"):
        return _VERDICTS[False]
    groups = [check.votes for check in evidence.pages] if evidence.pages else [evidence.votes]
    return _VERDICTS[any(_majority(votes) for votes in groups)]


def evidence_faults(evidence: Evidence, *, is_recorded: bool = True) -> Iterator[str]:
    """Yield the contradictions in the evidence of a result, one line each.

    Args:
        is_recorded: whether its version recorded the part of a page that was shown.
    """
    if evidence.decided_by == "judge":
        yield from _judge_faults(evidence, is_recorded)
    elif evidence.decided_by == "page":
        names_none = not evidence.pages and evidence.reason != NO_PAGE_NAMED
        if names_none or any(check.outcome != "unavailable" for check in evidence.pages):
            yield "failed for want of pages, though not all of them were unavailable"
    elif evidence.votes or any(check.votes for check in evidence.pages):
        yield f"decided by {evidence.decided_by}, and yet there are votes"
    for check in evidence.pages:
        if check.outcome == "unavailable" and check.votes:
            yield f"{check.url} was unavailable, and yet there are votes on it"


def _judge_faults(evidence: Evidence, is_recorded: bool) -> Iterator[str]:
    if not evidence.pages:
        yield from _vote_faults(evidence.votes, evidence.num_trials, "the answer")
        return
    if evidence.votes:
        yield "there are votes on the answer beside those on pages"
    judged = [check for check in evidence.pages if check.outcome != "unavailable"]
    if not judged:
        yield "decided by the judge, though no page was available"
    for check in judged:
        yield from _vote_faults(check.votes, evidence.num_trials, check.url)
        if check.votes and (check.outcome == "supported") is not _majority(check.votes):
            yield f"{check.url} is recorded as {check.outcome}, against its votes"
    if any(check.outcome == "supported" for check in evidence.pages[:-1]):
        yield "pages were checked after one that supports the claim"
    if is_recorded:
        yield from _shown_faults(judged)


def _shown_faults(checks: Sequence[PageCheck]) -> Iterator[str]:
    for check in checks:
        if check.page is None:
            yield f"{check.url} was judged, and nothing says what of it was shown"


def _vote_faults(votes: Sequence[Vote], num_trials: int | None, about: str) -> Iterator[str]:
    if not votes:
        yield f"a verdict on {about} without a vote"
        return
    if [vote.trial for vote in votes] != list(range(1, len(votes) + 1)):
        yield f"votes on {about} are missing, or there are too many"
    elif num_trials is not None and outcome([vote.supported for vote in votes], num_trials) is None:
        yield f"{len(votes)} votes on {about} settle nothing, of {num_trials}"
    if any(vote.supported and vote.declined is not None for vote in votes):
        yield f"a vote on {about} was declined, and yet counts as support"


def _majority(votes: Sequence[Vote]) -> bool:
    return 2 * sum(vote.supported for vote in votes) > len(votes)


_SKIP_REASON = re.compile(r"not judged, because '(.*)' (?:failed|was skipped)", re.DOTALL)


def skip_reason(leaf_id: str, status: str) -> str:
    """Return why a verification is skipped: a prerequisite failed or was skipped itself."""
    return f"not judged, because '{leaf_id}' {'failed' if status == 'failed' else 'was skipped'}"


def blocking_leaf_id(reason: str) -> str | None:
    """Return the leaf that ``skip_reason`` names, ``None`` for another reason."""
    found = _SKIP_REASON.fullmatch(reason)
    return None if found is None else found[1]


# In the notes on a page, where the judge takes fewer images than it has.
TO_THIS_JUDGE = "shown to this judge"

DecidedBy = Literal["judge", "prerequisite", "page", "script", "error"]
# Why a claim failed whose sources hold no URL.
NO_PAGE_NAMED = "the sources given name no page"
PageOutcome = Literal["supported", "not_supported", "unavailable"]
QuoteMatch = Literal["found", "approximate", "not_found"]
QuoteSource = Literal["page", "address", "answer"]
FlagKind = Literal[
    "forged delimiter",
    "chat template",
    "fake system message",
    "finished verdict",
    "instruction",
    "invisible text",
    "reversed text",
]


class Flag(BaseModel):
    """A sign that a text was written for the judge; it decides nothing by itself."""

    model_config = ConfigDict(frozen=True)

    kind: FlagKind
    excerpt: str


class Quote(BaseModel):
    """The passage that a judge names as decisive, and its place in the texts shown.

    Args:
        match: ``found`` but for typography, white space and letter case; ``approximate``, where a passage is
            nearly like it; or ``not_found``, which leaves the verdict as it is.
        source: the text that has the passage; ``None`` where it is not found, like its place.
        start: of the passage, in characters of the text as it was shown.
        end: likewise, behind the last character.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    match: QuoteMatch
    source: QuoteSource | None = None
    start: int | None = None
    end: int | None = None


class Vote(BaseModel):
    """One judge reply on a claim; a declined one counts as not supported (eval-scripts.md).

    Args:
        quote: ``None`` where the judge quotes nothing, and in results of earlier versions.
        judgment: the key that the reply is stored under, where it is.
    """

    model_config = ConfigDict(frozen=True)

    trial: int
    supported: bool
    reasoning: str
    quote: Quote | None = None
    declined: str | None = None
    judgment: str | None = None


class PageShown(BaseModel):
    """The part of a page that the judge was shown.

    Args:
        captured_at: UTC, ISO 8601; ``None`` where the cache does not know.
        captured_by: the browser that it was captured with.
        text_chars: characters of text shown, out of ``text_chars_stored``.
        images: screenshot parts or rendered PDF pages shown.
        notes: the parts left out and the signs of trouble, one line each.
        troubles: the kinds of trouble that the page's capture met (``CaptureRecord``).
        flags: passages of its text or address that seem to address the judge.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["web", "pdf"]
    sha256: str | None
    text_chars: int
    text_chars_stored: int
    images: int
    notes: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    captured_at: str | None = None
    captured_by: str | None = None


class PageCheck(BaseModel):
    """One source page held against the claim."""

    model_config = ConfigDict(frozen=True)

    url: str
    outcome: PageOutcome
    reason: str | None = None
    page: PageShown | None = None
    votes: tuple[Vote, ...] = ()


class Evidence(BaseModel):
    """Why a leaf passed, failed or was skipped.

    Args:
        decided_by: ``judge`` (votes decided), ``prerequisite`` (skipped), ``page`` (no source was
            available), ``script`` (a custom node) or ``error`` (an exception inside the verification).
        num_trials: of each vote, at most; a vote ends as soon as it is settled.
        votes: the votes on the answer alone; votes on pages are with their page.
        pages: every page checked, in order.
        reason: the cause in one line where no judge decided.
        flags: passages of the claim that seem to address the judge.
        prerequisites: ids of the nodes that the script named as ``extra_prerequisites``.
    """

    model_config = ConfigDict(frozen=True)

    decided_by: DecidedBy
    claim: str | None = None
    additional_instruction: str | None = None
    num_trials: int | None = None
    votes: tuple[Vote, ...] = ()
    pages: tuple[PageCheck, ...] = ()
    reason: str | None = None
    flags: tuple[Flag, ...] = ()
    prerequisites: tuple[str, ...] = ()
