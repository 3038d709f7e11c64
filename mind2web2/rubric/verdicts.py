"""Outcomes of nodes (scoring.md), and the evidence for verdicts on leaves; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self, TypeGuard

from pydantic import BaseModel, ConfigDict

Status = Literal["initialized", "passed", "failed", "partial", "skipped"]


_SCORE_NOISE = 1e-6


def is_success(score: float | None) -> bool:
    """Tell whether a score is 1, up to the noise of a sum's last digits."""
    return score is not None and score >= 1 - _SCORE_NOISE


def is_score(value: object) -> TypeGuard[float]:
    """Tell whether a value from a file is a score: a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


class Outcome(NamedTuple):
    """A score in [0, 1] and the status that goes with it."""

    score: float
    status: Status

    @property
    def blocks(self) -> bool:
        """Tell whether a leaf with this outcome blocks its dependents (eval-scripts.md)."""
        return self.status in ("failed", "skipped")


_SKIPPED = Outcome(0.0, "skipped")


class Scored(Protocol):
    """A node of a rubric tree: a script's own, or one that a result file has."""

    @property
    def critical(self) -> bool:
        """Tell whether it is a gate for its parent."""

    @property
    def strategy(self) -> str:
        """Return ``parallel`` or ``sequential``."""

    @property
    def children(self) -> Sequence[Self]:
        """Return the nodes right below; a leaf has none."""

    @property
    def verdict(self) -> Outcome:
        """Return the verdict on a leaf."""

    def walk(self) -> Iterator[Self]:
        """Yield this node and all below it, each before its children."""


def aggregate(root: Scored, verdicts: Mapping[int, Outcome] | None = None) -> dict[int, Outcome]:
    """Return the outcome of every node from ``root`` down, by ``id(node)``, in linear time.

    Leaves count as decided; nothing is written to the nodes.

    Args:
        verdicts: by ``id(leaf)``, in place of the leaves' own.
    """
    verdicts = verdicts or {}
    outcomes: dict[int, Outcome] = {}
    # Each node comes before its children in walk(), so that the reverse has children first, however
    # deep.
    for node in reversed(list(root.walk())):
        if not node.children:
            outcomes[id(node)] = verdicts.get(id(node), node.verdict)
            continue
        children = [outcomes[id(child)] for child in node.children]
        outcomes[id(node)] = outcome_of_children(node, children)
        if node.strategy == "sequential":
            ended = end_sequence(children)
            outcomes.update(zip(map(id, node.children), ended, strict=True))
    return outcomes


def outcome_of_children(node: Scored, children: Sequence[Outcome]) -> Outcome:
    """Return the outcome of an inner node from those of its children."""
    if node.strategy == "sequential":
        children = end_sequence(children)
    return gate_then_average(children, [child.critical for child in node.children])


def end_sequence(children: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes with all behind the first shortfall skipped (rule 2)."""
    for position, child in enumerate(children):
        if child.score < 1.0:
            return [
                *children[: position + 1],
                *[_SKIPPED] * (len(children) - position - 1),
            ]
    return list(children)


def gate_then_average(children: Sequence[Outcome], critical: Sequence[bool]) -> Outcome:
    """Return a parent's outcome by rules 3 and 4 of scoring.md."""
    gate = [
        child.score for child, is_critical in zip(children, critical, strict=True) if is_critical
    ]
    averaged = [
        child.score
        for child, is_critical in zip(children, critical, strict=True)
        if not is_critical
    ]
    if any(score < 1.0 for score in gate):
        score = 0.0
    else:
        score = sum(averaged) / len(averaged) if averaged else 1.0
    return Outcome(score, _inner_status(score, children))


def _inner_status(score: float, children: Sequence[Outcome]) -> Status:
    if score >= 1.0:
        return "passed"
    if score > 0.0:
        return "partial"
    return "failed" if any(child.status == "failed" for child in children) else "skipped"


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
    return _VERDICTS[any(is_majority(votes) for votes in groups)]


def is_majority(votes: Sequence[Vote]) -> bool:
    """Tell whether most votes support the claim."""
    return 2 * sum(vote.supported for vote in votes) > len(votes)


def skip_reason(leaf_id: str, status: str) -> str:
    """Return why a verification is skipped: a prerequisite failed or was skipped itself."""
    return f"not judged, because '{leaf_id}' {'failed' if status == 'failed' else 'was skipped'}"


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
        kind: a ``FlagKind``; results of earlier versions have others.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    excerpt: str


class Quote(BaseModel):
    """The passage that a judge names as decisive, and its place in the texts shown.

    Args:
        match: ``found`` but for typography, white space and letter case; ``approximate``, where a
            passage is nearly like it; or ``not_found``, which leaves the verdict as it is.
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

    def __str__(self) -> str:
        """Return why the judge decided so, with the passage that it quotes."""
        quotation = "" if self.quote is None else f' "{self.quote.text}"'
        return (self.declined or self.reasoning) + quotation

    @property
    def quotes_page(self) -> bool:
        """Tell whether it quotes a passage that is on the page."""
        quote = self.quote
        return quote is not None and quote.match != "not_found" and quote.source == "page"


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


_NOTHING_SHOWN = PageShown(kind="web", sha256=None, text_chars=0, text_chars_stored=0, images=0)


class PageCheck(BaseModel):
    """One source page held against the claim."""

    model_config = ConfigDict(frozen=True)

    url: str
    outcome: PageOutcome
    reason: str | None = None
    page: PageShown | None = None
    votes: tuple[Vote, ...] = ()

    @property
    def shown(self) -> PageShown:
        """Return what the judge was shown of the page: nothing of an unavailable one."""
        return self.page or _NOTHING_SHOWN


class Evidence(BaseModel):
    """Why a leaf passed, failed or was skipped.

    Args:
        decided_by: ``judge`` (votes decided), ``prerequisite`` (skipped), ``page`` (no source was
            available), ``script`` (a custom node) or ``error`` (an exception inside the
            verification).
        num_trials: of each vote, at most; a vote ends as soon as it is settled.
        votes: the votes on the answer alone; votes on pages are with their page.
        pages: every page checked, in order.
        reason: the cause in one line where no judge decided.
        blocked_by: the id of the leaf for which it was skipped.
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
    blocked_by: str | None = None
    flags: tuple[Flag, ...] = ()
    prerequisites: tuple[str, ...] = ()

    def vote_groups(self) -> list[tuple[Vote, ...]]:
        """Return the votes on the answer, and those on each page."""
        return [self.votes, *[check.votes for check in self.pages]]


NO_EVIDENCE = Evidence(decided_by="script")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that the judge declined twice (scoring.md, "Verdicts")."""

    node: str | None
    page: str | None
    reason: str


class ServiceAnswer(BaseModel):
    """A script's request to a map or paper service, with key and checksum of the stored answer."""

    model_config = ConfigDict(frozen=True)

    request: str
    key: str
    sha256: str


class ExtractionRecord(BaseModel):
    """Where an extraction's value comes from, for the audit of a result.

    Args:
        url: the page read; ``None`` for the answer.
        unavailable: why the page is unavailable; the value is then empty.
        declined: why the judge declined the content; the value is then empty.
        judgment: the key that the judge's reply is stored under, where it is.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    url: str | None = None
    page: PageShown | None = None
    unavailable: str | None = None
    declined: str | None = None
    judgment: str | None = None

    @property
    def shown(self) -> PageShown:
        """Return what the judge was shown of the page, nothing where it read the answer alone."""
        return self.page or _NOTHING_SHOWN


@dataclass(frozen=True)
class Undecided:
    """Stands in the place of a verdict or a value that is not known yet.

    Args:
        behind: so many undecided leaves in a row come before it.
    """

    behind: int = 0
