"""One extraction: a template filled from the answer or a page, with the record of its source."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from mind2web2.errors import CaptureError
from mind2web2.judge.protocol import QuestionContext
from mind2web2.llm_client.chat import ChatReply, ReplyCheck
from mind2web2.rubric.verdicts import ExtractionRecord
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.messages import extraction_messages
from mind2web2.verification.run_questions import AskedForm

Template = TypeVar("Template", bound=BaseModel)


async def filled(
    context: EvaluationContext,
    form: AskedForm,
    template: type[Template],
    check: ReplyCheck | None = None,
) -> tuple[ChatReply | None, ExtractionRecord]:
    """Return the judge's reply, ``None`` where the page is unavailable, and the record.

    Args:
        check: of a reply, where the template stands for a class of another process.
    """
    try:
        page = None
        if form.url is not None:
            page = await context.page(form.url, form.use_screenshot)
    except CaptureError as error:
        record = ExtractionRecord(name=form.name, url=form.url, unavailable=str(error))
        return None, record
    url = None if page is None else page.url
    answered = await context.ask(
        template,
        page,
        lambda shown: extraction_messages(
            context.task,
            context.answer,
            shown,
            form.prompt,
            form.additional_instruction,
        ),
        QuestionContext("extract", node=form.name, page=url),
        check=check,
    )
    record = ExtractionRecord(
        name=form.name,
        url=url,
        page=None if answered.shown is None else answered.shown.evidence_record(),
        declined=answered.reply.declined,
        judgment=answered.reply.judgment,
    )
    return answered.reply, record
