"""The judge as the toolkit uses it: questions, limits, failures, circuit breaker and usage."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from mind2web2.errors import (
    ContextTooLongError,
    ImagesRefusedError,
    JudgeAccessError,
    JudgeError,
    JudgmentMissingError,
    Mind2Web2Error,
)
from mind2web2.judge.store import Judgment, ServiceAnswer
from mind2web2.llm_client.chat import (
    NO_LIMIT,
    ChatReply,
    ChatRequest,
    ImageLimit,
    Limit,
    Usage,
    with_fewer_images,
)
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.rate_limiter import Retries, Slowdown
from mind2web2.scheduling import STOPPED, check_look, cut_off
from mind2web2.utils.api_misuse import script_api

Purpose = Literal["verify", "extract", "script"]
Noted = Literal["doubts", "refused_downloads", "ignored_arguments"]
Failure = TypeVar("Failure", bound=Mind2Web2Error)


# Usage


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that the judge declined twice (scoring.md, "Verdicts")."""

    node: str | None
    page: str | None
    reason: str


@dataclass(slots=True)
class JudgeLedger:
    """The usage of one answer's questions, and notes on them.

    Args:
        usage: of all questions, answered in this run or from stored judgments.
        served: number of judgments by the model and backend that the server reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: reasons why another machine or day may give another verdict; such a result is not reused.
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

    def note_created(self, moment: str) -> None:
        """Add the time of a judgment."""
        self.first_created = min(self.first_created or moment, moment)
        self.last_created = max(self.last_created or moment, moment)


@dataclass(slots=True)
class TaskUsage:
    """Usage of the judgments on one task's answers: requested in this run, and reused at no cost."""

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
    """Usage of a run by task, with the delays by rate limits and the retries."""

    tasks: dict[str, TaskUsage] = field(default_factory=dict)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)

    def of(self, task_id: str) -> TaskUsage:
        """Return the usage of a task."""
        return self.tasks.setdefault(task_id, TaskUsage())

    def total(self) -> TaskUsage:
        """Return the usage of all tasks together."""
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
    """Return the tokens of a stored judgment."""
    return Usage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
    )


def usage_of(judgment: Judgment) -> Usage:
    """Return the usage of a stored judgment at the time of its request, with dollars where known."""
    tokens = tokens_of(judgment)
    cost_usd = judgment.cost_usd
    if cost_usd is None:
        cost_usd = total_price_usd([tokens], judgment.model, in_batch=bool(judgment.batch))
    return replace(tokens, judgments=1, requests=judgment.attempts, cost_usd=cost_usd)


# Limits

# Seconds between checks for free requests, and for a new answer to send its first ones.
_CHECK_EVERY_S = 0.05
_STEP_S = 0.03


@script_api
class DualSemaphore:
    """The limits that a script receives.

    ``async with`` on the pair itself holds neither permit: every request inside enters its own limit.
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
    """A limit with a check after entering, so that requests which waited for the limit are checked too.

    Args:
        check: raises to refuse the request, which leaves the limit.
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


class HeldLimit:
    """A limit for one question's requests in turn; its place is kept after a reply, until this is closed.

    It is closed when the reply is stored: a process that dies loses no more replies than requests may be in
    flight.
    """

    def __init__(self, limit: AbstractAsyncContextManager[Any]) -> None:
        self._limit = limit
        self._held = AsyncExitStack()

    async def __aenter__(self) -> None:
        await self.aclose()
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._held.push_async_exit(self._limit)
        else:
            await self._limit.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Leave the limit."""
        await self._held.aclose()


class Admission:
    """Entered by each answer: more answers start while fewer judge requests are in flight than allowed.

    Args:
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
                    await asyncio.wait_for(self._ended.wait(), _CHECK_EVERY_S)
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


# Questions


@dataclass(frozen=True, slots=True)
class Subject:
    """The context of a question, for records and messages.

    Args:
        node: id of the leaf to verify, or the name of the extraction.
        trial: number of the vote, from 1; trials of one claim are independent requests.
    """

    purpose: Purpose
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


class Judge(Protocol):
    """The interface for extractor and verifier."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure; no request follows it."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes, for scripts and reports."""

    @property
    def image_limit(self) -> ImageLimit:
        """Return the known or configured limit of images in one question."""

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return, for a replay, the limits that the recorded run met, most images first."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    @property
    def async_response(self) -> Callable[..., Awaitable[Any]]:
        """Answer a request of a script's own (``AsyncCalls.async_response``)."""

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question; ``declined`` is set where the judge declined it twice.

        Raises:
            ContextTooLongError: a shorter request may succeed; no permanent failure.
            ImagesRefusedError: a request within ``image_limit`` may succeed; no permanent failure.
            JudgmentMissingError: a replay lacks the judgment; no permanent failure.
            JudgeError: the judge failed permanently, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure and return it, to be raised."""

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Return why a concurrent verification is skipped, ``None`` if it is not.

        The reason depends on the order of verdicts, so a run records it and a replay returns the record
        instead of ``skip_reason``.
        """


class FailureLatch:
    """Remembers that a judge failed, so that an answer without a result sends no more requests."""

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


def unexpected(error: Exception) -> JudgeError:
    """Return the judge failure for an unforeseen error of its client."""
    return JudgeError(f"the judge's client failed: {type(error).__name__}: {error}")


class JudgeSession:
    """The part of a ``Judge`` that every implementation shares: failure, ledger and image limit."""

    def __init__(self, usage: Usage, image_limit: ImageLimit = NO_LIMIT) -> None:
        self._latch = FailureLatch()
        self._ledger = JudgeLedger(usage)
        self.image_limit = image_limit

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes."""
        check_look("the ledger of the judge")
        return self._ledger

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure."""
        check_look("whether the judge has failed")
        return self._latch.failure

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure."""
        return self._latch.fail(failure)

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""
        getattr(self._ledger, kind).append(text)

    def _note_rejection(self, reply: ChatReply, subject: Subject) -> None:
        if reply.declined is not None:
            self._ledger.rejections.append(Rejection(subject.node, subject.page, reply.declined))


@contextmanager
def cut_off_noted(judge: Judge, name: str) -> Iterator[None]:
    """Record a failure of the judge if the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(cut_off(name))
        raise


ChatCall = Callable[[ChatRequest, Limit], Awaitable[ChatReply]]


async def ask_twice_if_declined(chat: ChatCall, request: ChatRequest, limit: Limit) -> ChatReply:
    """Send a request, and once more if the judge declined: content filters are not deterministic."""
    first = await chat(request, limit)
    if first.declined is None:
        return first
    second = await chat(request, limit)
    return replace(second, usage=first.usage + second.usage, attempts=first.attempts + second.attempts)


async def ask_within_limits(
    judge: Judge, request: ChatRequest, subject: Subject, limit: Limit | None
) -> ChatReply:
    """Send a script's own request, without the images that exceed the judge's limit.

    Raises:
        JudgeError: as ``Judge.ask``; every error is a permanent failure.
    """
    recorded = list(judge.recorded_limits)
    shown = judge.image_limit
    while True:
        # A script's own images are not scaled.
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


log = logging.getLogger(__name__)

# A firewall may reject the text of one answer or of one task, but hardly that of so many answers in a row.
_ENOUGH_ANSWERS = 10


class CircuitBreaker:
    """Stops the requests of a run once the judge rejects them all.

    A rejection that concerns all requests (``is_for_all``) opens the circuit at once. Any other may be due to
    one prompt: it opens the circuit only if many answers in a row were rejected and no request is in flight.
    Until a reply comes, requests then go one at a time, so that a wrong model costs few of them.

    Args:
        one_by_one: ``False`` for batch jobs, as each request would wait for a job of its own.

    Attributes:
        reason: why the circuit is open, ``None`` while requests are sent.
    """

    def __init__(self, *, one_by_one: bool = True) -> None:
        self.reason: JudgeAccessError | None = None
        self._suspected_at = 1 if one_by_one else _ENOUGH_ANSWERS
        self._rejected_answers: dict[tuple[str, str], JudgeAccessError] = {}
        self._in_flight = 0
        self._change = asyncio.Event()

    def note_reply(self) -> None:
        """Note that the judge has answered a request."""
        self._rejected_answers.clear()
        self._notify()

    def note_failure(self, error: BaseException, source: tuple[str, str]) -> None:
        """Note a failed question of an answer, given as task id and answer name."""
        if isinstance(error, JudgeAccessError):
            self._rejected_answers[source] = error
            if error.is_for_all:
                self._open(error)

    def enter(self) -> asyncio.Event | None:
        """Count a request as in flight; return an event instead if it must wait for other replies.

        Raises:
            JudgeAccessError: the circuit is open.
        """
        rejected = len(self._rejected_answers)
        if self.reason is None and self._in_flight and rejected >= self._suspected_at:
            return self._change
        if rejected >= _ENOUGH_ANSWERS:
            self._open(list(self._rejected_answers.values())[-1])
        if self.reason is not None:
            raise JudgeAccessError(str(self.reason), is_for_all=self.reason.is_for_all)
        self._in_flight += 1
        return None

    def leave(self, *, has_reply: bool) -> None:
        """Count a request as no longer in flight."""
        self._in_flight -= 1
        if has_reply:
            self.note_reply()
        else:
            self._notify()

    def _open(self, error: JudgeAccessError) -> None:
        if self.reason is None:
            self.reason = error
            log.info("no further request is sent reason=%s", error)
            self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


class GuardedLimit:
    """A limit whose requests pass a circuit breaker after entering it, and leave it while they must wait."""

    def __init__(self, breaker: CircuitBreaker, limit: Limit) -> None:
        self._breaker, self._limit = breaker, limit

    async def __aenter__(self) -> None:
        while True:
            async with AsyncExitStack() as entered:
                await entered.enter_async_context(self._limit)
                change = self._breaker.enter()
                if change is None:
                    entered.pop_all()
                    return
            await change.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker.leave(has_reply=error is None)
        await self._limit.__aexit__(kind, error, trace)
