"""Pages and model as a script uses them itself, by way of its extractor or verifier."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import CaptureError
from mind2web2.llm_client.chat import Limit, Message
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.context import EvaluationContext


@script_api
class ScriptAccess:
    """Pages and model as a script may use them itself, by way of its extractor or verifier."""

    def __init__(self, context: EvaluationContext) -> None:
        self._context = context
        self.logger = context.logger

    async def get_page_info(self, url: str) -> tuple[list[str], str] | tuple[None, None]:
        """Return a page's images as base64 JPEGs and its text, cached or captured.

        ``(None, None)`` for a page that is unavailable.
        """
        try:
            images, text = await self._context.page_info(str(url))
        except CaptureError as error:
            self.logger.warning("page is unavailable url=%s reason=%s", url, error)
            return None, None
        finally:
            self._context.note_captured(str(url))
        return [image.partition("base64,")[2] for image in images], text

    async def call_llm_with_semaphore(
        self,
        *,
        model: str,
        messages: Sequence[Message],
        response_format: type[BaseModel] | None = None,
        **keywords: Any,
    ) -> Any:
        """Send a request of the script's own to the judge, within the run's limits.

        The result and further keywords are those of ``LLMClient.async_response``.
        """
        return await self._context.judge.async_response(
            model=model,
            messages=messages,
            response_format=response_format,
            limit=self._context.llm_limit,
            **keywords,
        )


def limits_of(semaphore: Any) -> tuple[Limit, Limit]:
    """Return the limits for judge requests and captures.

    They are those of a ``DualSemaphore``, or of any one semaphore.
    """
    if semaphore is None:
        return nullcontext(), nullcontext()
    try:
        return semaphore.llm, semaphore.webpage
    except AttributeError:
        return semaphore, semaphore
