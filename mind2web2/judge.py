"""A judge as the toolkit asks it: one question at a time, a failure remembered, refusals listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    Mind2Web2Error,
)
from mind2web2.judgments import judgment_key
from mind2web2.kept_replies import current_replies
from mind2web2.llm_client.chat import ChatProvider, ChatReply, ChatRequest, Limit, TokenUsage
from mind2web2.program_order import check_look

Failure = TypeVar("Failure", bound=Mind2Web2Error)
Purpose = Literal["verify", "extract", "script"]


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


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question whose content the judge declined twice (contract.md, "Failures are never verdicts")."""

    node: str | None
    page: str | None
    reason: str


@dataclass(slots=True)
class JudgeLedger:
    """What the questions of one answer came to.

    Args:
        requests: HTTP requests, retries, repairs and second questions included.
        served: how many judgments came from which model and backend, as reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: what might have come out otherwise on another machine or day; such a result is not reused.
    """

    judgments: int = 0
    requests: int = 0
    served: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    first_created: str | None = None
    last_created: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0
    rejections: list[Rejection] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def add(self, other: JudgeLedger) -> None:
        """Count what another ledger has as well."""
        self.judgments += other.judgments
        self.requests += other.requests
        self.served += other.served
        self.note_created(other.first_created)
        self.note_created(other.last_created)
        self.usage += other.usage
        known = self.cost_usd is not None and other.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        self.rejections += other.rejections
        self.doubts += other.doubts

    def note_created(self, moment: str | None) -> None:
        """Note when a judgment was made."""
        if moment is not None:
            self.first_created = min(self.first_created or moment, moment)
            self.last_created = max(self.last_created or moment, moment)


_set_aside: ContextVar[JudgeLedger | None] = ContextVar("mind2web2_ledger_set_aside", default=None)


@contextmanager
def ledger_set_aside(ledger: JudgeLedger) -> Iterator[None]:
    """Keep what starts in the ``with`` block in a ledger of its own: it may not count in the end."""
    token = _set_aside.set(ledger)
    try:
        yield
    finally:
        _set_aside.reset(token)


def current_ledger(usual: JudgeLedger) -> JudgeLedger:
    """Return the ledger that this code's questions are kept in."""
    return _set_aside.get() or usual


def note_doubt(judge: Judge, what: str) -> None:
    """Note what might have come out otherwise on another machine or day."""
    judge.count(JudgeLedger(doubts=[what]))


class Judge(Protocol):
    """Whom the extractor and the verifier ask."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good; from then on nothing is asked."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far; it is for scripts and reports to look at."""

    def count(self, ledger: JudgeLedger) -> None:
        """Count what another ledger has as well."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question; ``declined`` is set where the content was declined twice.

        Raises:
            ContextTooLongError: the request must be shorter; no failure yet.
            JudgmentMissingError: a replay lacks the judgment; no failure yet, since another may decide.
            JudgeError: the judge failed for good, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good and return it, to be raised."""

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Return why a verification that runs beside others is skipped, ``None`` if it is not.

        That depends on what happens to be decided at the time, so a run records it and a replay follows
        the record instead of ``skip_reason``.
        """


class FailureLatch:
    """Remembers that a judge failed, so that nothing more is asked for an answer that gets no result."""

    def __init__(self) -> None:
        self.failure: Mind2Web2Error | None = None
        self._usual: FailureLatch | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(f"nothing more is asked after a failure: {self.failure}") from self.failure
        if self._usual is not None:
            self._usual.check()

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure

    def beside(self, usual: FailureLatch) -> FailureLatch:
        """Be a latch that checks the usual one as well, while its own failures stay with it."""
        self._usual = usual
        return self


_latch_set_aside: ContextVar[FailureLatch | None] = ContextVar("mind2web2_latch_set_aside", default=None)


@contextmanager
def failures_set_aside() -> Iterator[None]:
    """Keep the failures of what starts in the ``with`` block apart: they may not count in the end."""
    token = _latch_set_aside.set(FailureLatch())
    try:
        yield
    finally:
        _latch_set_aside.reset(token)


def current_latch(usual: FailureLatch) -> FailureLatch:
    """Return the latch that failures of this code's questions are kept in."""
    aside = _latch_set_aside.get()
    return usual if aside is None else aside.beside(usual)


class LatchedLimit:
    """A limit that lets nobody in once the judge has failed, not even those who were waiting.

    Args:
        limit: entered first; ``None`` for no limit.
        latch: looked at afterwards.
    """

    def __init__(self, limit: Limit | None, latch: FailureLatch) -> None:
        self._limit: Limit = nullcontext() if limit is None else limit
        self._latch = latch

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        try:
            self._latch.check()
        except JudgeError:
            await self._limit.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)


class ScriptedClient(Protocol):
    """Any object that scripts and tests pass as a client (contract.md)."""

    async def async_response(self, **keywords: Any) -> Any:
        """Return the reply's text or the filled ``response_format``."""


class ClientProvider:
    """Makes a chat provider of any client that has only ``async_response``; tokens are not known."""

    def __init__(self, client: ScriptedClient) -> None:
        self._client = client

    @property
    def endpoint(self) -> str:
        """Return the client's class and, as two of a class may judge differently, which one it is."""
        kind = type(self._client)
        return f"client {kind.__module__}.{kind.__qualname__} {_identity(self._client)}"

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one request, as ``ChatProvider.chat`` promises."""
        try:
            async with nullcontext() if limit is None else limit:
                result = await self._respond(request)
        except JudgeDeclinedError as error:
            return ChatReply(text="", declined=str(error))
        except JudgeError:
            raise
        except Exception as error:
            # A foreign client's errors are unknown to us, and none of them may pass for a verdict.
            raise unexpected(error) from error
        return _as_reply(result, request.template)

    async def close(self) -> None:
        """Leave the client open: it belongs to whoever handed it in."""

    async def _respond(self, request: ChatRequest) -> Any:
        parameters = {"response_format": request.template} if request.template is not None else {}
        return await self._client.async_response(
            model=request.model, messages=list(request.messages), **parameters
        )


def _identity(client: object) -> str:
    """Return a name that this client keeps as long as it lives, and no other ever has."""
    try:
        return _identities.setdefault(client, uuid4().hex)
    except TypeError:  # the client's class allows neither weak references nor hashing
        return uuid4().hex


_identities: WeakKeyDictionary[object, str] = WeakKeyDictionary()


class ClientJudge:
    """Asks a client directly, outside of any run; nothing is stored."""

    def __init__(self, provider: ChatProvider) -> None:
        self._provider = provider
        self._latch = FailureLatch()
        self._ledger = JudgeLedger(cost_usd=None)

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far."""
        check_look("what the judge has been asked")
        return self._ledger

    def count(self, ledger: JudgeLedger) -> None:
        """Count what another ledger has as well."""
        current_ledger(self._ledger).add(ledger)

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good."""
        check_look("whether the judge has failed")
        return self._latch.failure

    def model_for(self, requested: str) -> str:
        """Return the requested model: such a client takes any."""
        return requested

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        latch = current_latch(self._latch)
        latch.check()
        try:
            reply = await self._reply(request, subject.trial, LatchedLimit(limit, latch))
        except ContextTooLongError:
            raise
        except JudgeError as error:
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        ledger = current_ledger(self._ledger)
        ledger.judgments += 1
        ledger.usage += reply.usage
        note_rejection(ledger, reply, subject)
        return reply

    async def _reply(self, request: ChatRequest, trial: int, limit: Limit) -> ChatReply:
        replies = current_replies()
        if replies is None:
            return await ask_twice_if_declined(self._provider.chat, request, limit)
        question = judgment_key(request, trial)
        kept = _for_template(replies.take(question), request)
        reply = kept or await ask_twice_if_declined(self._provider.chat, request, limit)
        replies.keep(question, reply)
        return reply

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good."""
        return current_latch(self._latch).fail(failure)

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:  # noqa: ARG002
        """Return the reason as it is: nothing is recorded."""
        return skip_reason


def _for_template(reply: ChatReply | None, request: ChatRequest) -> ChatReply | None:
    """Return a reply from an earlier attempt with the template of this one: the script was imported anew."""
    if reply is None or reply.value is None or request.template is None:
        return reply
    try:
        return replace(reply, value=request.template.model_validate_json(reply.text))
    except ValidationError:
        return None


def unexpected(error: Exception) -> JudgeError:
    """Return the failure that an unforeseen error on the way to a judge counts as: it is no verdict."""
    return JudgeError(f"the judge's client failed: {type(error).__name__}: {error}")


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


def note_rejection(ledger: JudgeLedger, reply: ChatReply, subject: Subject) -> None:
    """List a declined question."""
    if reply.declined is not None:
        ledger.rejections.append(Rejection(subject.node, subject.page, reply.declined))


def as_judge(client: Any) -> Judge:
    """Return the judge behind a client: itself where it can be asked, else wrapped."""
    if hasattr(client, "ask") and hasattr(client, "ledger"):
        judge: Judge = client
        return judge
    return ClientJudge(as_provider(client))


def as_provider(client: Any) -> ChatProvider:
    """Return the chat provider behind a client: itself where it is one, else wrapped.

    Raises:
        TypeError: the object is no client.
    """
    if hasattr(client, "chat") and hasattr(client, "endpoint"):
        provider: ChatProvider = client
        return provider
    if not hasattr(client, "async_response"):
        raise TypeError(f"client must have async_response(...), which {type(client).__name__} lacks")
    return ClientProvider(client)


def _as_reply(result: Any, template: type[BaseModel] | None) -> ChatReply:
    if template is None:
        return ChatReply(text=str(result))
    unfit = JudgeOutputError(
        f"judge client returned {type(result).__name__}, which does not fill {template.__name__}"
    )
    if _is_foreign_object(result, template):
        raise unfit
    try:
        # By attributes, so that a look-alike class of a client's own fills the template too.
        value = template.model_validate(result, from_attributes=True)
    except ValidationError as error:
        raise unfit from error
    return ChatReply(text=value.model_dump_json(by_alias=True, round_trip=True), value=value)


def _is_foreign_object(result: Any, template: type[BaseModel]) -> bool:
    """Tell whether an object has none of the template's fields: where all are optional, any would fill it."""
    if isinstance(result, template | Mapping) or type(result).__module__ == "builtins":
        return False
    return not any(hasattr(result, name) for name in template.model_fields)
