"""What evidence comes to, and where it contradicts itself."""

import pytest

from mind2web2.rubric.verdicts import (
    Evidence,
    Outcome,
    PageCheck,
    PageShown,
    Vote,
    evidence_faults,
    implied_verdict,
)

PASSED, FAILED, SKIPPED = Outcome(1.0, "passed"), Outcome(0.0, "failed"), Outcome(0.0, "skipped")
SHOWN = PageShown(kind="web", sha256="ab", text_chars=1, text_chars_stored=1, images=0)


def cast(votes, first=1):
    """Return votes from letters: yes, no, declined, and (wrongly) declined in favour."""
    return tuple(
        Vote(trial=trial, supported=vote in "yY", reasoning="", declined="no" if vote in "dY" else None)
        for trial, vote in enumerate(votes, start=first)
    )


def check(outcome, votes="", *, url="https://a.example", page=SHOWN, first=1):
    """Return the check of a page."""
    shown = None if outcome == "unavailable" else page
    return PageCheck(url=url, outcome=outcome, page=shown, votes=cast(votes, first))


def judged(*pages, votes="", num_trials=3):
    """Return what a judge has left."""
    return Evidence(decided_by="judge", votes=cast(votes), pages=pages, num_trials=num_trials)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (judged(votes="yy"), PASSED),
        (judged(votes="nyy"), PASSED),
        (judged(votes="yd"), FAILED),
        (judged(check("not_supported", "nn"), check("supported", "yny")), PASSED),
        (judged(check("unavailable"), check("not_supported", "nn")), FAILED),
        (Evidence(decided_by="prerequisite"), SKIPPED),
        (Evidence(decided_by="page", pages=(check("unavailable"),)), FAILED),
        (Evidence(decided_by="error"), FAILED),
        (Evidence(decided_by="script"), None),
    ],
)
def test_evidence_implies_a_verdict(evidence, verdict):
    """The majority of the votes on one page, whatever the page is said to be."""
    assert implied_verdict(evidence) == verdict
    relabelled = [page.model_copy(update={"outcome": "supported"}) for page in evidence.pages]
    assert implied_verdict(evidence.model_copy(update={"pages": tuple(relabelled)})) == verdict


@pytest.mark.parametrize(
    "evidence",
    [
        judged(votes="yy"),
        judged(votes="ynd"),
        judged(votes="y", num_trials=1),
        judged(votes="y", num_trials=None),
        judged(votes="ynyy", num_trials=5),
        judged(check("unavailable"), check("not_supported", "nn"), check("supported", "yy")),
        Evidence(decided_by="page", pages=(check("unavailable"), check("unavailable"))),
        Evidence(decided_by="prerequisite", reason="not judged, because 'a' failed"),
        Evidence(decided_by="error", reason="RuntimeError"),
        Evidence(decided_by="script"),
    ],
)
def test_what_a_run_leaves_has_no_fault(evidence):
    """For every way of deciding."""
    assert list(evidence_faults(evidence)) == []


@pytest.mark.parametrize(
    ("evidence", "fault"),
    [
        (judged(), "a verdict on the answer without a vote"),
        (judged(check("supported")), "a verdict on https://a.example without a vote"),
        (judged(votes="y"), "1 votes on the answer settle nothing, of 3"),
        (judged(votes="yn"), "2 votes on the answer settle nothing, of 3"),
        (judged(votes="Yy"), "a vote on the answer was declined, and yet counts as support"),
        (judged(check("supported", "yy", first=2)), "votes on https://a.example are missing"),
        (judged(check("supported", "nn")), "recorded as supported, against its votes"),
        (judged(check("not_supported", "yy")), "recorded as not_supported, against its votes"),
        (judged(check("supported", "yy"), check("not_supported", "nn")), "after one that supports the claim"),
        (judged(check("supported", "yy"), votes="yy"), "votes on the answer beside those on pages"),
        (judged(check("supported", "yy", page=None)), "nothing says what of it was shown"),
        (
            judged(check("unavailable", "yy"), check("supported", "yy")),
            "unavailable, and yet there are votes",
        ),
        (judged(check("unavailable")), "though no page was available"),
        (Evidence(decided_by="page"), "though not all of them were unavailable"),
        (Evidence(decided_by="page", pages=(check("supported", "yy"),)), "not all of them were unavailable"),
        (Evidence(decided_by="prerequisite", votes=cast("yy")), "decided by prerequisite, and yet"),
        (Evidence(decided_by="script", pages=(check("supported", "yy"),)), "decided by script, and yet"),
    ],
)
def test_contradictions_in_evidence_are_reported(evidence, fault):
    """In one line, with the page."""
    assert any(fault in found for found in evidence_faults(evidence))


def test_what_was_shown_is_asked_of_those_only_who_kept_it():
    """Earlier versions did not."""
    evidence = judged(check("supported", "yy", page=None))
    assert len(list(evidence_faults(evidence))) == 1
    assert list(evidence_faults(evidence, is_recorded=False)) == []
