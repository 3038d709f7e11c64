"""The record of what decided a leaf, kept in the result so that a person can audit the score."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

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
    """A sign that a text was written for the judge; it decides nothing by itself.

    Args:
        excerpt: the words or signs that gave it away, on one line.
    """

    model_config = ConfigDict(frozen=True)

    kind: FlagKind
    excerpt: str


class Quote(BaseModel):
    """The passage that a judge names as decisive, and where it stands in what was shown.

    Args:
        match: ``found`` but for typography, white space and letter case; ``approximate``, where a passage is
            nearly like it; or ``not_found``, which leaves the verdict as it is.
        source: what the passage stands in; ``None`` where it is not found, like its place.
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
    """What of a page the judge was shown.

    Args:
        kind: how the cache keeps the page.
        sha256: hex digest of the stored content.
        captured_at: UTC, ISO 8601; ``None`` where the cache does not know.
        captured_by: the browser that it was captured with.
        text_chars: characters of text shown, out of ``text_chars_stored``.
        images: screenshot parts or rendered PDF pages shown.
        notes: what was left out or looked wrong, one line each.
        troubles: the kinds of trouble that the page's capture met (``CaptureRecord``).
        flags: what in its text or address looks as if it were meant for the judge.
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
        decided_by: ``judge`` (votes decided), ``prerequisite`` (skipped), ``page`` (no source could be
            had), ``script`` (a custom node) or ``error`` (an exception inside the verification).
        claim: what was to be verified.
        additional_instruction: the script's extra instruction to the judge.
        num_trials: of each vote, at most; a vote ends as soon as it is settled.
        votes: the votes on the answer alone; votes on pages are with their page.
        pages: every page checked, in order.
        reason: the cause in one line where no judge decided.
        flags: what in the claim looks as if it were meant for the judge.
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
