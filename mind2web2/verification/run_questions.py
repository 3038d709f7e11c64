"""The questions of a script's process to its run.

They ask for whole verdicts, extractions and pages, as plain data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from pydantic import AfterValidator, BaseModel, BeforeValidator

from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import NO_INSTRUCTION
from mind2web2.prompts.flags import flags_of
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord, Undecided
from mind2web2.rubric.vote_rule import checked_trials
from mind2web2.utils.api_misuse import script_api


@script_api
class BinaryEvalResult(BaseModel):
    """A judge's verdict on one claim, and the passage that decides it."""

    reasoning: str
    result: bool
    # A client of a script's own gives the two published fields; a verdict without a quote, or with
    # null for it, counts as well.
    quote: Annotated[str, BeforeValidator(lambda quote: quote or "")] = ""
    dispensable_properties: ClassVar[frozenset[str]] = frozenset({"quote"})


@dataclass(frozen=True)
class Verification:
    """A claim with all that is given about it; defaults filled in.

    Args:
        missing: the name of a value that the claim rests on and the answer does not give.
    """

    claim: str
    node_id: str | None
    additional_instruction: str
    num_trials: Annotated[int, AfterValidator(checked_trials)]
    use_screenshot: bool
    prerequisites: tuple[str, ...] = ()
    missing: str | None = None


@dataclass(frozen=True)
class AskedClaim:
    """A claim and its pages, without any the answer alone."""

    verification: Verification
    urls: list[str]


@dataclass(frozen=True)
class AskedForm:
    """A request to extract; ``url`` is ``None`` for the answer."""

    prompt: str
    url: str | None
    additional_instruction: str | None
    use_screenshot: bool
    name: str


@dataclass(frozen=True)
class Given:
    """The context of all questions of a script; ``answer`` is ``None`` for the run's answer."""

    task: str
    answer: str | None
    evaluator_config: PageSettings


@runtime_checkable
class RunQuestions(Protocol):
    """A judge in a script's process, whose run has the pages and asks the questions.

    A script may go on with a stand-in for a reply that is not known yet; ``Undecided`` takes the
    place of the evidence or the record.
    """

    @property
    def most_open_gates(self) -> int:
        """Return behind how many undecided leaves a claim may be asked."""

    def left_open(self) -> tuple[bool, Undecided]:
        """Return the stand-in for a verdict whose prerequisites are not decided yet."""

    async def judged(self, claim: AskedClaim, given: Given) -> tuple[bool, Evidence | Undecided]:
        """Return what ``ClaimJudging.judged`` returns."""

    async def filled(
        self, form: AskedForm, template: type[BaseModel], given: Given
    ) -> tuple[BaseModel | None, ExtractionRecord | Undecided]:
        """Return the filled template and the record.

        The template is ``None`` where there is nothing to fill it from.
        """

    async def page_info(self, url: str, given: Given) -> tuple[list[str], str]:
        """Return a page's images as data URLs and its text.

        Raises CaptureError: it is unavailable.
        """


def evidence_of(verification: Verification, decided_by: Any, **details: Any) -> Evidence:
    """Return the evidence for a verdict, ``details`` being fields of ``Evidence``."""
    # Any: pydantic checks both against the model's fields.
    instruction = verification.additional_instruction
    return Evidence(
        decided_by=decided_by,
        claim=verification.claim,
        additional_instruction=None if instruction == NO_INSTRUCTION else instruction,
        num_trials=verification.num_trials if decided_by == "judge" else None,
        flags=flags_of(verification.claim),
        prerequisites=verification.prerequisites,
        **details,
    )
