"""What evidence comes to: the verdict its votes and pages imply, and where it contradicts itself; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mind2web2.rubric.aggregation import Outcome
from mind2web2.rubric.evidence import NO_PAGE_NAMED, Evidence, PageCheck, Vote


def check_trials(num_trials: int) -> None:
    """Raise ``ValueError`` unless ``num_trials`` is odd and positive."""
    if type(num_trials) is not int or num_trials < 1 or num_trials % 2 == 0:
        raise ValueError(f"num_trials must be an odd number such as 3, not {num_trials!r}")


def outcome(votes: Sequence[bool], num_trials: int) -> bool | None:
    """Return what the votes decide, or ``None`` while they do not.

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
    """Yield, one line each, what cannot be so in evidence that a run has left.

    Args:
        is_recorded: whether its version kept a record of what of a page was shown.
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
        yield "decided by the judge, though no page could be had"
    for check in judged:
        yield from _vote_faults(check.votes, evidence.num_trials, check.url)
        if check.votes and (check.outcome == "supported") is not _majority(check.votes):
            yield f"{check.url} is said to be {check.outcome}, against its votes"
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
