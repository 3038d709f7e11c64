"""Puts the labelled set to a judge, with the pages, prompts, votes and store of an evaluation."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from mind2web2.capture.models import CaptureRecord, Trouble
from mind2web2.errors import CacheMiss, JudgeOutputError, MachineError, Mind2Web2Error
from mind2web2.judge.budget import request_tokens
from mind2web2.judge.caching import AnswerJudge, RecordedJudge
from mind2web2.judge.protocol import TaskUsage
from mind2web2.judge.store import JudgeIdentity, JudgmentStore
from mind2web2.judge_check.labelled_set import (
    LabelledClaim,
    LabelledForm,
    LabelledPage,
    LabelledSet,
    can_be_drawn,
    screenshot,
)
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit, Usage
from mind2web2.pages.captures import PageKind
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.evidence import Evidence, Vote
from mind2web2.rubric.node import VerificationNode
from mind2web2.utils.aio import all_or_first_error
from mind2web2.verification.claims import BinaryEvalResult
from mind2web2.verification.context import EvaluationContext, EvaluatorConfig
from mind2web2.verification.extractor import Extractor
from mind2web2.verification.verifier import Verifier

log = logging.getLogger(__name__)

# In the store, in place of a task.
SOURCE = "check-judge"


@dataclass(frozen=True)
class CaseOutcome:
    """A judge's reply to one case.

    Args:
        is_right: ``None`` where the judge failed, which says nothing about its verdicts.
        given: the verdict, or the values of the form.
        is_invalid: the reply could not be read, however often it was asked for.
    """

    case: LabelledClaim | LabelledForm
    is_right: bool | None
    given: bool | Mapping[str, object] | None = None
    votes: tuple[tuple[bool, ...], ...] = ()
    declined: int = 0
    failure: str | None = None
    is_invalid: bool = False


@dataclass(frozen=True)
class JudgeCheck:
    """A judge's replies to the cases of the labelled set.

    Args:
        repairs: invalid replies for which the judge was asked again.
        seconds: of this check, stored replies being free.
    """

    judge: JudgeIdentity
    labelled: LabelledSet
    outcomes: tuple[CaseOutcome, ...]
    usage: TaskUsage
    repairs: int
    seconds: float


class LabelledPages:
    """The pages of the set as a page cache has them; a screenshot is drawn when it is read."""

    def __init__(self, pages: Mapping[str, LabelledPage]) -> None:
        self._pages = pages

    def has(self, url: str) -> PageKind | None:
        """Tell whether a page belongs to the set."""
        return "web" if url in self._pages else None

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return text and screenshot; without one where Pillow's font lacks the letters."""
        page = self._pages[url]
        is_drawn = get_screenshot and can_be_drawn(page.text)
        return page.text, screenshot(page.text, page.picture) if is_drawn else None

    def capture_record(self, url: str) -> CaptureRecord:
        """Return the record that a capture of the page leaves."""
        page = self._pages[url]
        troubles = () if page.trouble is None else (Trouble(kind=page.trouble, detail=""),)
        return CaptureRecord(
            requested_url=url,
            final_url=url,
            kind="web",
            captured_at="2032-01-01T12:00:00+00:00",
            troubles=troubles,
            unfolded=page.unfolded,
        )

    def get_pdf(self, url: str) -> bytes:
        """Raise ``CacheMiss``: there are none."""
        raise CacheMiss(url)

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> None:  # noqa: ARG002
        """Refuse: the set does not change."""
        raise MachineError("the labelled set takes no pages")

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:  # noqa: ARG002
        """Refuse, likewise."""
        raise MachineError("the labelled set takes no pages")


@dataclass(frozen=True)
class Checking:
    """How the set is put to judges.

    Args:
        votes: of each claim at most; a vote ends as soon as it is settled.
        library: keeps the prepared pages for the next judge.
    """

    labelled: LabelledSet
    votes: int
    limit: Limit
    on_reply: Callable[[], object] = lambda: None
    library: PageLibrary = field(default_factory=PageLibrary)

    async def of(self, judge: RecordedJudge) -> JudgeCheck:
        """Ask a judge all cases at once, within the limit.

        Raises:
            JudgmentStoreError: replies could not be stored.
        """
        started = time.monotonic()
        pages = LabelledPages(self.labelled.pages)
        outcomes = await all_or_first_error(self._outcome(judge, pages, case) for case in self.labelled.cases)
        await judge.write_rest()
        return JudgeCheck(
            judge.identity,
            self.labelled,
            tuple(outcomes),
            judge.usage.total(),
            judge.usage.retries.reasons["unusable output"],
            time.monotonic() - started,
        )

    async def _outcome(
        self, judge: RecordedJudge, pages: LabelledPages, case: LabelledClaim | LabelledForm
    ) -> CaseOutcome:
        # Of its own for each case: after a failure a session asks nothing more.
        session = AnswerJudge(judge, SOURCE, case.id, self.limit)
        context = EvaluationContext(
            judge=session,
            model=judge.settings.model,
            task=case.task,
            answer=case.answer,
            cache=pages,
            library=self.library,
            capture=None,
            llm_limit=self.limit,
            page_limit=self.limit,
            config=EvaluatorConfig(default_num_trials=self.votes),
            logger=log,
        )
        try:
            return await (_claim(context, case) if isinstance(case, LabelledClaim) else _form(context, case))
        except Mind2Web2Error as error:
            reason = session.failure or error
            return CaseOutcome(
                case, None, failure=str(reason), is_invalid=isinstance(reason, JudgeOutputError)
            )
        finally:
            self.on_reply()


async def _claim(context: EvaluationContext, case: LabelledClaim) -> CaseOutcome:
    leaf = VerificationNode(id=case.id, desc=case.question)
    supported = await Verifier(context).verify(case.question, leaf, case.urls or None)
    evidence = leaf.evidence
    if evidence is None or evidence.decided_by != "judge":
        raise MachineError(f"case {case.id} was not judged: {evidence and evidence.reason}")
    cast = _votes(evidence)
    return CaseOutcome(
        case,
        supported is case.right,
        supported,
        tuple(tuple(vote.supported for vote in own) for own in cast),
        sum(vote.declined is not None for own in cast for vote in own),
    )


def _votes(evidence: Evidence) -> list[tuple[Vote, ...]]:
    return [own for own in (evidence.votes, *(check.votes for check in evidence.pages)) if own]


async def _form(context: EvaluationContext, case: LabelledForm) -> CaseOutcome:
    extractor, template = Extractor(context), case.template()
    if case.url is None:
        value = await extractor.simple_extract(case.question, template, extraction_name=case.id)
    else:
        value = await extractor.extract_from_url(case.question, case.url, template, extraction_name=case.id)
    (record,) = extractor.records
    if record.unavailable is not None:
        raise MachineError(f"case {case.id} was not judged: {record.unavailable}")
    declined = int(record.declined is not None)
    return CaseOutcome(case, case.is_filled_rightly(value), value.model_dump(), declined=declined)


class CountingProvider:
    """Sends nothing: counts the requests that a check takes, and their tokens.

    Args:
        store: whose judgments are free; ``None`` where none count.
    """

    def __init__(self, endpoint: str, store: JudgmentStore | None) -> None:
        self.endpoint = endpoint
        self.prompts: list[int] = []
        self.stored = 0
        self._store = store

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Count a request and give an empty reply."""
        if self._store is not None and await self._store.get(request.name, self.endpoint) is not None:
            self.stored += 1
        else:
            self.prompts.append(request_tokens(request))
        value = _empty_reply(request.template or BaseModel)
        return ChatReply(text=value.model_dump_json(), value=value, usage=Usage())

    async def close(self) -> None:
        """Do nothing."""


def _empty_reply(template: type[BaseModel]) -> BaseModel:
    if template is BinaryEvalResult:
        return BinaryEvalResult(reasoning="", result=False)
    values: dict[str, Any] = {
        name: [] if field.annotation == list[str] else None for name, field in template.model_fields.items()
    }
    return template.model_validate(values)
