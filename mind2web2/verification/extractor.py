"""The extractor: fills templates from the answer or a page, with a record of each source."""

from __future__ import annotations

import asyncio
import itertools
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from mind2web2.capture.models import PackageBrowser
from mind2web2.judge.protocol import Judge, cut_off_noted
from mind2web2.llm_client.structured_output import with_lists
from mind2web2.pages.answer_cache import AnswerCache, run_cache
from mind2web2.prompts import NO_INSTRUCTION, encodable
from mind2web2.rubric.verdicts import ExtractionRecord, Undecided
from mind2web2.utils.api_misuse import checked_call, script_api
from mind2web2.verification.run_questions import AskedForm, BinaryEvalResult, RunQuestions
from mind2web2.verification.script_access import (
    EvaluatorConfig,
    ScriptAccess,
    ScriptContext,
    as_judge,
    limits_of,
)
from mind2web2.verification.stand_ins import empty_instance
from mind2web2.verification.verifier import Verifier

if TYPE_CHECKING:
    from mind2web2.pages.captures import PageCapture
    from mind2web2.pages.page_cache import PageCache

__all__ = [
    "BinaryEvalResult",
    "EvaluatorConfig",
    "Extractor",
    "Verifier",
    "create_evaluator",
]

Template = TypeVar("Template", bound=BaseModel)


log = logging.getLogger(__name__)


# The log shows this much of an extracted value; the result has all of it.
_VALUE_CHARS = 2_000


@script_api
class Extractor(ScriptAccess):
    """Fills pydantic templates from an answer or a page."""

    def __init__(self, context: ScriptContext) -> None:
        super().__init__(context)
        self._numbers = itertools.count()
        self._records: dict[int, ExtractionRecord] = {}

    @property
    def records(self) -> list[ExtractionRecord]:
        """Return where each value comes from, in the order asked for, whichever was there first."""
        return [self._records[number] for number in sorted(self._records)]

    async def simple_extract(
        self,
        extraction_prompt: str,
        template_class: type[Template],
        additional_instruction: str = NO_INSTRUCTION,
        *,
        extraction_name: str = "extraction",
    ) -> Template:
        """Fill the template from the answer; empty where the judge declined the content.

        Raises:
            JudgeError: the judge failed for good.
        """
        form = AskedForm(
            encodable(extraction_prompt),
            None,
            additional_instruction,
            use_screenshot=True,
            name=encodable(extraction_name),
        )
        return await self._extract(form, template_class)

    async def extract_from_url(
        self,
        extraction_prompt: str,
        url: str,
        template_class: type[Template],
        *,
        additional_instruction: str = NO_INSTRUCTION,
        use_screenshot: bool = True,
        extraction_name: str = "extraction",
    ) -> Template:
        """Fill the template from a page.

        It is empty where the page is unavailable or the judge declined the content.

        Raises:
            JudgeError: the judge failed for good.
        """
        form = AskedForm(
            encodable(extraction_prompt),
            url,
            additional_instruction,
            bool(use_screenshot),
            encodable(extraction_name),
        )
        return await self._extract(form, template_class)

    async def _extract(self, form: AskedForm, template: type[Template]) -> Template:
        number = next(self._numbers)
        with cut_off_noted(self._context.judge, form.name):
            # All that was started together is asked before one of the values is there.
            await asyncio.sleep(0)
            value, record = await self._fill(form, template)
        if isinstance(record, Undecided):
            return cast("Template", value)
        if form.url is not None:
            self._context.note_captured(form.url)
        self._records[number] = record
        if record.unavailable is not None:
            self.logger.warning(
                "extraction empty name=%s url=%s reason=%s",
                record.name,
                record.url,
                record.unavailable,
            )
        else:
            self.logger.info(
                "extracted name=%s url=%s declined=%s value=%s",
                record.name,
                record.url,
                record.declined,
                _value_text(value),
            )
        return empty_instance(template) if value is None else value

    async def _fill(
        self, form: AskedForm, template: type[Template]
    ) -> tuple[Template | None, ExtractionRecord | Undecided]:
        context = self._context
        value, noted = await context.run.filled(form, template, context.given([form.url]))
        return cast("Template | None", with_lists(value)), noted


def _value_text(value: BaseModel | None) -> str:
    """Return an extracted value for the log, on one line and not longer than a reader wants."""
    if value is None:
        return "none"
    try:
        text = value.model_dump_json(warnings=False)
    except (
        Exception
    ) as error:  # a script's own serializer may raise anything, and this is only the log
        return f"not shown ({type(error).__name__})"
    return (
        text
        if len(text) <= _VALUE_CHARS
        else f"{text[:_VALUE_CHARS]}... ({len(text):,} characters)"
    )


@checked_call
def create_evaluator(
    *,
    client: Any,
    task_description: str,
    answer: str,
    global_cache: PageCache | None,
    global_semaphore: Any,
    logger: logging.Logger | None,
    default_model: str = "o4-mini",
    extract_model: str | None = None,
    verify_model: str | None = None,
    config: EvaluatorConfig | None = None,
    browser_manager: PageCapture | None = None,
) -> tuple[Extractor, Verifier]:
    """Return an extractor and a verifier for one answer.

    Args:
        client: an ``LLMClient`` or any object with ``async_response``.
        global_semaphore: a ``DualSemaphore``; any one semaphore, or ``None``, will do.
        default_model: for extraction and verification unless they are named apart.
        browser_manager: captures pages that are not stored; a run's own browser comes before ours.
    """
    llm_limit, page_limit = limits_of(global_semaphore)
    judge: Judge = as_judge(client, llm_limit)
    settings = config or EvaluatorConfig()
    of_run = run_cache(global_cache)
    browser = _own_browser(of_run, browser_manager)
    own: Any = None
    # Pages of a cache or browser of the script's own are in its process alone.
    has_own_pages = global_cache is not None and (of_run is None or browser is not None)
    if has_own_pages or not isinstance(judge, RunQuestions):
        own = _own_questions()(
            judge,
            task_description,
            answer,
            global_cache,
            page_limit,
            logger or log,
            settings,
            browser,
        )

    def context(model: str | None) -> ScriptContext:
        run: Any = judge
        if own is not None:
            run = own.asking(judge.model_for(model or default_model))
        return ScriptContext(
            judge=judge,
            run=run,
            task=task_description,
            answer=answer,
            cache=global_cache,
            logger=logger or log,
            config=settings,
        )

    return Extractor(context(extract_model)), Verifier(context(verify_model))


def _own_browser(of_run: AnswerCache | None, browser: PageCapture | None) -> PageCapture | None:
    """Return the browser of the script's own; a run's comes before ours, even if it has none."""
    if of_run is not None and (of_run.captures is None or isinstance(browser, PackageBrowser)):
        return None
    return browser


def _own_questions() -> Any:
    # A script's process does not load what it leaves to its run.
    return import_module("mind2web2.verification.own_questions").own_questions
