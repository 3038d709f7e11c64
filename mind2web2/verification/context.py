"""One answer under evaluation: the pages and the judge that its extractor and verifier share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pydantic import BaseModel

from mind2web2.errors import (
    CaptureError,
    ContextTooLongError,
    DoubtfulPageError,
    JudgmentMissingError,
    MachineError,
    Mind2Web2Error,
    PageBugError,
)
from mind2web2.judge.protocol import Judge, QuestionContext
from mind2web2.llm_client.chat import (
    ChatReply,
    ChatRequest,
    Limit,
    Message,
    ReplyCheck,
)
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.page_cache import PageCache
from mind2web2.pages.prepared_page import PageSettings, PreparedPage
from mind2web2.rubric.verdicts import NO_PAGE_NAMED
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS

if TYPE_CHECKING:
    from mind2web2.pages.captures import SharedCaptures

# A page too long for the judge's context is cut further, this often at most (eval-scripts.md).
_FURTHER_CUTS = 2

Template = TypeVar("Template", bound=BaseModel)


@dataclass(frozen=True)
class EvaluationContext:
    """One answer under evaluation, as the judge's questions need it.

    Args:
        model: the model that a script named.
        cache: the task's stored pages; ``None`` where there are none.
        looked_up: the pages asked for, each with its digest as the judge was shown it first.
        capture: for pages that are not stored; ``None`` where none are captured.
        page_limit: entered around each capture.
        settings: how pages are prepared.
        votes: the most on a claim for which the script names no number.
    """

    judge: Judge
    model: str
    task: str
    answer: str
    cache: PageCache | None
    library: PageLibrary
    capture: SharedCaptures | None
    page_limit: Limit
    logger: logging.Logger
    settings: PageSettings = field(default_factory=PageSettings)
    looked_up: dict[str, str | None] = field(default_factory=dict)
    votes: int = DEFAULT_TRIALS

    async def page(self, url: str, with_images: bool) -> PreparedPage:
        """Return a page as the judge is to be shown it.

        Raises:
            CaptureError: it is unavailable.
            PageBugError: an unforeseen error, which costs one leaf.
        """
        if with_images and not self.judge.shows_images:
            return (await self._page(url, with_images=False)).without_images()
        return await self._page(url, with_images)

    async def _page(self, url: str, with_images: bool) -> PreparedPage:
        if not url.strip():
            raise CaptureError(NO_PAGE_NAMED)
        if self.cache is None:
            raise CaptureError("this evaluation has no page cache")
        shown = self.looked_up.setdefault(url, None)
        try:
            with self._failures_noted(f"page {url} cannot be prepared"):
                page = await self.library.page(self._page_request(url, with_images))
        except DoubtfulPageError as error:
            self.judge.note("doubts", f"{url}: {error}")
            raise
        self.looked_up[url] = shown or page.sha256
        if page.doubt is not None:
            self.judge.note("doubts", f"{url}: {page.doubt}")
        return page

    async def page_info(self, url: str) -> tuple[list[str], str]:
        """Return a page's images as data URLs and its text.

        Raises CaptureError: it is unavailable.
        """
        # All images, whatever the judge is shown: they are the script's own affair.
        page = await self._page(url, with_images=True)
        return [str(image) for image in page.images], str(page.text)

    async def prepare(self, url: str, with_images: bool) -> None:
        """Make a page ready that may be asked for; nothing is noted of it before it is."""
        if self.cache is not None:
            with_images = with_images and self.judge.shows_images
            await self.library.page(self._page_request(url, with_images))

    async def cached(self, urls: Sequence[str]) -> list[bool]:
        """Tell of each page whether it was stored before this run captured any.

        See ``PageLibrary.cached``.
        """
        if self.cache is None:
            return [False] * len(urls)
        with self._failures_noted("stored pages cannot be listed"):
            return await self.library.cached(self.cache, urls)

    @contextmanager
    def _failures_noted(self, effect: str) -> Iterator[None]:
        """Let a failing disk, like a failing judge, cost the result.

        The failure says nothing about a claim.
        """
        try:
            yield
        except CaptureError:
            raise
        except Mind2Web2Error as error:
            raise self.judge.fail(error) from error.__cause__
        except (OSError, MemoryError) as error:
            failure = MachineError(f"{effect}: {type(error).__name__}: {error}")
            raise self.judge.fail(failure) from error
        except Exception as error:
            self.logger.exception(effect)
            raise PageBugError(f"{type(error).__name__}: {error}") from error

    def _page_request(self, url: str, with_images: bool) -> PageRequest:
        return PageRequest(
            cache=cast("PageCache", self.cache),
            url=url,
            settings=self.settings,
            with_images=with_images,
            capture=self.capture,
            limit=self.page_limit,
            logger=self.logger,
        )

    async def ask(
        self,
        template: type[Template],
        page: PreparedPage | None,
        messages: Callable[[PreparedPage | None], Sequence[Message]],
        subject: QuestionContext,
        *,
        others_may_decide: bool = False,
        check: ReplyCheck | None = None,
    ) -> Answered[Template]:
        """Ask, showing less of the page where the judge takes no more.

        Args:
            others_may_decide: a judgment that a replay lacks is not a failure yet.
            check: of a reply, where the template stands for a class of another process.

        Raises:
            JudgeError: the judge failed for good, or the question does not fit even so.
        """
        while True:
            request = ChatRequest(
                model=self.model,
                messages=messages(page),
                template=template,
                check=check,
            )
            try:
                reply = await self.judge.ask(request, subject)
            except JudgmentMissingError as error:
                if others_may_decide:
                    raise
                raise self.judge.fail(error) from error.__cause__
            except ContextTooLongError as error:
                if page is None or page.times_halved == _FURTHER_CUTS:
                    raise self.judge.fail(error) from error.__cause__
                page = page.halve()
            else:
                # A judge fills the template it was given or declines.
                return Answered(reply, cast("Template | None", reply.value), page)


@dataclass(frozen=True)
class Answered(Generic[Template]):
    """A reply with the page that was asked about.

    ``value`` is ``None`` where the judge declined.
    """

    reply: ChatReply
    value: Template | None
    page: PreparedPage | None

    @property
    def shown(self) -> PreparedPage | None:
        """Return the page as the judge was shown it."""
        if self.page is None or self.reply.images is None:
            return self.page
        return self.page.as_shown(self.reply.images)
