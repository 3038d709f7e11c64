"""How the toolkit asks a judge: questions, limits, failures, and what an answer's questions took."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from mind2web2.errors import (
    ContextTooLongError,
    ImagesRefusedError,
    JudgeError,
    JudgmentMissingError,
    Mind2Web2Error,
)
from mind2web2.judge.store import Judgment, ServiceAnswer
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.llm_client.messages import with_fewer_images
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.rate_limiter import Slowdown
from mind2web2.llm_client.retry import Retries
from mind2web2.scheduling.scheduler import STOPPED, cut_off
from mind2web2.utils.api_misuse import script_api


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question whose content the judge declined twice (scoring.md, "Verdicts")."""

    node: str | None
    page: str | None
    reason: str


@dataclass(slots=True)
class JudgeLedger:
    """What the questions of one answer came to.

    Args:
        usage: of all its questions, whether asked in this run or answered from stored judgments.
        served: how many judgments came from which model and backend, as reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: what might have come out otherwise on another machine or day; such a result is not reused.
        refused_downloads: by the script itself, from private addresses that it may not visit.
        ignored_arguments: names of arguments in the script that have no effect.
        services: what map and paper services answered it.
    """

    usage: Usage = field(default_factory=Usage)
    served: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    first_created: str | None = None
    last_created: str | None = None
    rejections: list[Rejection] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refused_downloads: list[str] = field(default_factory=list)
    ignored_arguments: list[str] = field(default_factory=list)
    services: list[ServiceAnswer] = field(default_factory=list)

    def note_created(self, moment: str | None) -> None:
        """Note when a judgment was made."""
        if moment is not None:
            self.first_created = min(self.first_created or moment, moment)
            self.last_created = max(self.last_created or moment, moment)


@dataclass(slots=True)
class TaskUsage:
    """What the judgments about one task's answers have taken, or about several tasks'.

    Args:
        asked: in this run.
        reused: when they were asked, in an earlier run or earlier in this one; nothing was paid again.
    """

    asked: Usage = field(default_factory=Usage)
    reused: Usage = field(default_factory=Usage)

    def __add__(self, other: TaskUsage) -> TaskUsage:
        """Return the sum of both."""
        return TaskUsage(self.asked + other.asked, self.reused + other.reused)

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``usage.json``."""
        return {"asked": _as_json(self.asked), "reused": _as_json(self.reused)}


@dataclass(slots=True)
class RunUsage:
    """What a run has asked and reused, by task.

    Args:
        slowdown: how much the judge's rate limits have delayed the run.
        retries: how often requests were tried again, and why.
    """

    tasks: dict[str, TaskUsage] = field(default_factory=dict)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)

    def of(self, task_id: str) -> TaskUsage:
        """Return the account of a task."""
        return self.tasks.setdefault(task_id, TaskUsage())

    def total(self) -> TaskUsage:
        """Return the account of all tasks together."""
        return sum(self.tasks.values(), TaskUsage())


def _as_json(usage: Usage) -> dict[str, Any]:
    return {
        "judgments": usage.judgments,
        "requests": usage.requests,
        "untold_requests": usage.unreported_requests,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": rounded_usd(usage),
    }


def rounded_usd(usage: Usage) -> float | None:
    """Return the dollars as files have them, ``None`` where they are unknown."""
    return None if usage.cost_usd is None else round(usage.cost_usd, 6)


def tokens_of(judgment: Judgment) -> Usage:
    """Return the tokens of a stored judgment, as in the reply that it was made from."""
    return Usage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
    )


def usage_of(judgment: Judgment) -> Usage:
    """Return what a stored judgment took when it was asked, with dollars as far as they are known."""
    tokens = tokens_of(judgment)
    cost_usd = judgment.cost_usd
    if cost_usd is None:
        cost_usd = total_price_usd([tokens], judgment.model, in_batch=bool(judgment.batch))
    return replace(tokens, judgments=1, requests=judgment.attempts, cost_usd=cost_usd)


Failure = TypeVar("Failure", bound=Mind2Web2Error)


class FailureLatch:
    """Remembers that a judge failed, so that nothing more is asked for an answer that gets no result."""

    def __init__(self) -> None:
        self.failure: Mind2Web2Error | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(f"nothing more is asked after a failure: {self.failure}") from self.failure

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure


# Seconds between two looks at the judge's requests, and for a new answer to send its first ones.
_LOOK_EVERY_S = 0.05
_STEP_S = 0.03


@script_api
class DualSemaphore:
    """The limits that a script is given.

    ``async with`` on the pair itself holds neither permit: every request inside enters its own limit.

    Args:
        webpage_semaphore: entered around each page capture.
        llm_semaphore: entered around each judge request.
    """

    def __init__(self, webpage_semaphore: Any, llm_semaphore: Any) -> None:
        self.webpage = webpage_semaphore
        self.llm = llm_semaphore

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class CheckedLimit:
    """A limit that is left again where a check says so, which whoever was waiting for it has to pass too.

    Args:
        limit: entered first; ``None`` for no limit.
        check: called within; raises for who is not to be let in.
    """

    def __init__(self, limit: AbstractAsyncContextManager[Any] | None, check: Callable[[], None]) -> None:
        self._limit = nullcontext() if limit is None else limit
        self._check = check

    async def __aenter__(self) -> None:
        async with AsyncExitStack() as entered:
            await entered.enter_async_context(self._limit)
            self._check()
            entered.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)


class Admission:
    """Entered by each answer: further answers start while fewer judge requests are in flight than may be.

    Args:
        requests: the limit of judge requests.
        least: answers that may run at once in any case.
        most: answers that may run at once at most, as each takes a process and memory.
    """

    def __init__(self, requests: asyncio.Semaphore, least: int, most: int) -> None:
        self._requests = requests
        self._least = least
        self._most = max(least, most)
        self._running = 0
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()

    async def __aenter__(self) -> None:
        async with self._turn:
            while self._running >= self._least and not self._has_room():
                self._ended.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _LOOK_EVERY_S)
            if self._running >= self._least:
                await asyncio.sleep(_STEP_S)
            self._running += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running -= 1
        self._ended.set()

    def _has_room(self) -> bool:
        return self._running < self._most and not self._requests.locked()


Purpose = Literal["verify", "extract", "script"]
Noted = Literal["doubts", "refused_downloads", "ignored_arguments"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about, for records and messages.

    Args:
        node: id of the leaf to verify, or the name of the extraction.
        trial: number of the vote, from 1; trials of one claim are independent requests.
    """

    purpose: Purpose
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


def note_doubt(judge: Judge, what: str) -> None:
    """Note what might have come out otherwise on another machine or day."""
    judge.note("doubts", what)


def note_refused_download(judge: Judge, url: str) -> None:
    """Note what a script could not download because its address is private."""
    judge.note("refused_downloads", url)


@contextmanager
def cut_off_noted(judge: Judge, what: str) -> Iterator[None]:
    """Count it as a failure of the judge where the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(cut_off(what))
        raise


def note_ignored_argument(judge: Judge, name: str) -> None:
    """Note an argument in the script that has no effect."""
    judge.note("ignored_arguments", name)


class Judge(Protocol):
    """Whom the extractor and the verifier ask."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good; from then on nothing is asked."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far; it is for scripts and reports to look at."""

    @property
    def image_limit(self) -> ImageLimit:
        """Return how many images it is shown at most, as far as that is set or known."""

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return, for a replay, the limits that were met while it was recorded, most images first."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    @property
    def async_response(self) -> Callable[..., Awaitable[Any]]:
        """Answer a request of a script's own (``AsyncCalls.async_response``)."""

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question; ``declined`` is set where the content was declined twice.

        Raises:
            ContextTooLongError: the request must be shorter; no failure yet.
            ImagesRefusedError: it must have fewer or smaller images (``image_limit``); no failure yet.
            JudgmentMissingError: a replay lacks the judgment; no failure yet, since another may decide.
            JudgeError: the judge failed for good, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good and return it, to be raised."""

    def note(self, kind: Noted, what: str) -> None:
        """List something in the ledger."""

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Return why a verification that runs beside others is skipped, ``None`` if it is not.

        That depends on what happens to be decided at the time, so a run records it and a replay follows
        the record instead of ``skip_reason``.
        """


class ChatCall(Protocol):
    """Sends a request to a model."""

    async def __call__(self, request: ChatRequest, limit: Limit) -> ChatReply:
        """Return the reply."""


async def ask_twice_if_declined(chat: ChatCall, request: ChatRequest, limit: Limit) -> ChatReply:
    """Ask, and once more where the judge declined: it may have been a whim of the filter."""
    first = await chat(request, limit)
    if first.declined is None:
        return first
    second = await chat(request, limit)
    return replace(second, usage=first.usage + second.usage, attempts=first.attempts + second.attempts)


async def ask_within_limits(
    judge: Judge, request: ChatRequest, subject: Subject, limit: Limit | None
) -> ChatReply:
    """Ask what a script has made up itself, leaving out the images that the judge does not take.

    Raises:
        JudgeError: as ``Judge.ask``, with what is no failure there as one.
    """
    recorded = list(judge.recorded_limits)
    shown = judge.image_limit
    while True:
        # Images of a script's own are not made smaller.
        count = 0 if shown.max_side_px is not None else shown.max_images
        fewer = request
        if count is not None:
            fewer = replace(request, messages=with_fewer_images(request.messages, count))
        try:
            return await judge.ask(fewer, subject, limit)
        except ImagesRefusedError as error:
            if count == 0:
                raise judge.fail(error) from error.__cause__
            shown = judge.image_limit
        except JudgmentMissingError as error:
            if not recorded:
                raise judge.fail(error) from error.__cause__
            shown = shown.merged(recorded.pop(0))
        except ContextTooLongError as error:
            raise judge.fail(error) from error.__cause__


def note_rejection(ledger: JudgeLedger, reply: ChatReply, subject: Subject) -> None:
    """List a declined question."""
    if reply.declined is not None:
        ledger.rejections.append(Rejection(subject.node, subject.page, reply.declined))
