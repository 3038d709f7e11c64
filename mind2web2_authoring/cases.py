"""Cases of a task's author: answers with the score that they deserve."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.plugin import (
    AskedClaim,
    AuthorFile,
    FieldShape,
    PolicyRun,
    PolicyScript,
    WrittenNode,
    YamlFileError,
    number,
    read_regular_file,
    uniform_text,
)
from mind2web2_authoring.answers import Answer, ClaimOnPages, claim_on_pages, own_values

PERFECT = "perfect"
# A score may be given with two decimals.
TOLERANCE = 0.005
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class Fact(BaseModel):
    """Claims that hold, by pattern (``*`` for any text), on pages by pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str = Field(description="a pattern of claims", examples=["*Mill Museum*"])
    page: str = Field("*", description="a pattern of addresses")


class CaseHeader(BaseModel):
    """The head of a case, between lines of ``---`` before the answer's text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    expect: float = Field(
        ge=0, le=1, description="the score that the answer deserves", examples=[1.0]
    )
    leaves: dict[str, Literal["passed", "failed", "skipped"]] = Field(
        default_factory=dict,
        description="verdicts of single leaves, where they matter",
        examples=[{"museum_founded": "failed"}],
    )
    extract: dict[str, Any] = Field(
        default_factory=dict,
        description="what the judge reads from the answer, by field (of scripts: by "
        "extraction or by field)",
        examples=[{"museum": {"name": "Mill Museum"}}],
    )
    facts: tuple[Fact | str, ...] | None = Field(
        None,
        description="the claims that hold; by default those that the perfect answer's "
        "evaluation asks about",
        examples=[["*Mill Museum*"]],
    )
    missing_pages: tuple[str, ...] = Field(
        (),
        description="patterns of pages that are not there",
        examples=[["https://gone.example/*"]],
    )


@dataclass(frozen=True)
class Case:
    """An answer with its header.

    Args:
        file: has the line of each part of the header.
    """

    file: AuthorFile
    header: CaseHeader
    answer: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.file.path.stem


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of a case.

    Args:
        expected: ``None`` where the file cannot be read.
        got: ``None`` where the case has no score.
        differs: says where the case is not as expected, or why it has no score.
    """

    name: str
    expected: float | None
    got: float | None
    differs: str | None

    def __str__(self) -> str:
        """Return both scores."""
        expected = number(self.expected)
        got = "no score" if self.got is None else number(self.got)
        return f"expected {expected}, got {got}"


def case_paths(folder: Path) -> list[Path]:
    """Return the files of a task's cases, the perfect one first."""
    return sorted(folder.glob("*.md"), key=lambda path: (path.stem != PERFECT, path.stem))


def read_case(path: Path) -> Case:
    """Return one case.

    Raises:
        YamlFileError: the file is wrong; the text names file, line and field.
    """
    text = uniform_text(read_regular_file(path).decode("utf-8", "replace"))
    front = _FRONT.match(text)
    if front is None:
        message = "has no header: begin it with ---, expect: 1.0 and ---"
        raise AuthorFile(path).fault((), message)
    # The line of the header's opening counts.
    file = AuthorFile.parsed(b"\n" + front[1].encode(), path)
    return Case(file, file.values_of(CaseHeader, Fact), text[front.end() :].strip() + "\n")


def case_text(header: CaseHeader, answer: str, note: str) -> str:
    """Return the text of a case's file."""
    plain = header.model_dump(mode="json", exclude_defaults=True)
    front = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n# {note}\n{front}---\n\n{answer.strip()}\n"


@dataclass
class _CaseAnswer(Answer):
    """A case as an answer, whose claims hold by its facts."""

    facts: tuple[Fact | str, ...] | None = None

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim is supported."""
        if self.facts is None:
            return super().holds(claim)
        return self.has_pages_of(claim) and any(_matches(fact, claim) for fact in self.facts)


def _matches(fact: Fact | str, claim: AskedClaim) -> bool:
    text = claim.verification.claim
    if isinstance(fact, str):
        return fnmatchcase(text, fact)
    pages = claim.urls or ["answer"]
    return fnmatchcase(text, fact.claim) and any(fnmatchcase(page, fact.page) for page in pages)


def answer_of(case: Case, truth: frozenset[ClaimOnPages] | None) -> Answer:
    """Return a case as the answer of a rehearsal.

    Args:
        truth: the claims that hold where the case has no facts; ``None`` if all do.
    """
    header = case.header

    def is_there(url: str) -> bool:
        return not any(fnmatchcase(url, pattern) for pattern in header.missing_pages)

    # A case without values has an answer that says nothing.
    return _CaseAnswer(
        case.answer,
        given=header.extract,
        is_empty=not header.extract,
        truth=truth,
        page_is_there=is_there,
        facts=header.facts,
    )


def header_fault(case: Case, answer: Answer, run: PolicyRun) -> YamlFileError | None:
    """Return the first value under ``extract`` that does not fit the script's extractions."""
    return next(filter(None, _faults(case, answer, is_complete=run.error is None)), None)


def _faults(case: Case, answer: Answer, *, is_complete: bool) -> Iterator[YamlFileError | None]:
    extract = case.header.extract
    known: dict[str, Any] = {}
    for key, template in answer.templates.items():
        name = key.partition(" @ ")[0]
        own = own_values(extract, name)
        above = (name,) if own is extract.get(name) else ()
        try:
            template.model_validate({k: v for k, v in own.items() if k in template.model_fields})
        except ValidationError as error:
            yield case.file.misfit(("extract", *above), error)
        fields: dict[str, Any] = {}
        for shape in FieldShape.all_of(template):
            level = fields
            for part in shape.path:
                level = level.setdefault(part, {})
        if above:
            known[name] = fields
        else:
            known |= fields
    # A script that fails early has not asked for the other values.
    if is_complete:
        for place, names in _unknown(extract, known, ()):
            yield case.file.unknown(("extract", *place), "field", names)


def _unknown(
    values: Any, known: Mapping[str, Any], place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Iterable[str]]]:
    """Yield the places of names that no extraction reads, with those that are read there."""
    if isinstance(values, list):
        for position, item in enumerate(values):
            yield from _unknown(item, known.get("*", {}), (*place, position))
    if not isinstance(values, dict) or (place and not known):
        return
    for name, value in values.items():
        if name in known:
            yield from _unknown(value, known[name], (*place, name))
        else:
            yield (*place, name), known


async def rehearse_case(
    script: PolicyScript, path: Path, truth: frozenset[ClaimOnPages] | None
) -> CaseOutcome:
    """Run a script on a case; ``truth`` is ``None`` where no perfect answer says what holds."""
    try:
        case = read_case(path)
        header = case.header
        if header.facts is None and truth is None and case.name != PERFECT:
            perfect = path.parent / f"{PERFECT}.md"
            raise case.file.fault((), f"has no facts: give some, or a sound {perfect}")
    except YamlFileError as error:
        return CaseOutcome(path.stem, None, None, str(error))
    answer = answer_of(case, None if case.name == PERFECT else truth)
    run = await script.run(case.answer, answer)
    fault = header_fault(case, answer, run)
    reason = str(fault) if fault is not None else run.error
    if reason is not None or run.score is None:
        return CaseOutcome(case.name, header.expect, None, reason)
    return outcome_of(case, run.leaves, run.score)


def outcome_of(case: Case, leaves: Sequence[WrittenNode], score: float) -> CaseOutcome:
    """Return the outcome of a case with a score."""
    return CaseOutcome(case.name, case.header.expect, score, _difference(case, leaves, score))


def _difference(case: Case, leaves: Sequence[WrittenNode], score: float) -> str | None:
    header = case.header
    statuses = {leaf.id: leaf.verdict.status for leaf in leaves}
    for leaf, expected in header.leaves.items():
        if leaf not in statuses:
            return str(case.file.unknown(("leaves", leaf), "leaf", statuses))
        if statuses[leaf] != expected:
            return f"{leaf}: expected {expected}, got {statuses[leaf]}"
    if abs(header.expect - score) <= TOLERANCE:
        return None
    short = next((leaf for leaf in leaves if leaf.verdict.status != "passed"), None)
    if short is None:
        return "every leaf passed"
    gone = [page.url for page in short.grounds.pages if page.outcome == "unavailable"]
    return "; unavailable: ".join([f"first leaf that did not pass: {short.id}", *gone])


def truth_of(run: PolicyRun, answer: Answer) -> frozenset[ClaimOnPages]:
    """Return the claims that were asked about and held, with their pages."""
    return frozenset(claim_on_pages(claim) for claim in run.claims if answer.holds(claim))
