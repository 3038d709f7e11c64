"""A run's judge with its memory: stored judgments are reused, new ones are kept as they arrive."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import ValidationError

from mind2web2.errors import ContextTooLongError, JudgeError, JudgmentMissingError, Mind2Web2Error
from mind2web2.judge import (
    Failure,
    FailureLatch,
    JudgeLedger,
    LatchedLimit,
    Subject,
    ask_twice_if_declined,
    note_rejection,
    unexpected,
)
from mind2web2.judgments import Judgment, JudgmentStore, gate_key, judgment_key
from mind2web2.llm_client.calls import AsyncCalls
from mind2web2.llm_client.chat import ChatProvider, ChatReply, ChatRequest, Limit, TokenUsage
from mind2web2.llm_client.prices import price_usd

log = logging.getLogger(__name__)

REPLAY_ENDPOINT = "replay"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges a run, and with which parameters.

    Args:
        provider: as given on the command line.
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any server's.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
    """

    provider: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    replayed_endpoint: str | None = None


@dataclass(slots=True)
class RunTotals:
    """What a run has asked so far.

    Args:
        asked: judgments that a model was asked for.
        reused: judgments that were stored already.
        requests: HTTP requests, retries and repairs included.
        usage: tokens of what was asked in this run.
        cost_usd: ``None`` once a model without a known price was asked.
    """

    asked: int = 0
    reused: int = 0
    requests: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0


class RecordedJudge:
    """One judge for a whole run.

    Args:
        settings: model and parameters.
        provider: whom to ask; ``None`` answers from the store alone (replay).
        store: where judgments are kept.
        overwrite: reuse only what this run itself has asked.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        provider: ChatProvider | None,
        store: JudgmentStore,
        *,
        overwrite: bool = False,
    ) -> None:
        self.settings = settings
        self.totals = RunTotals()
        self._provider = provider
        self._store = store
        self._overwrite = overwrite
        self._asked_now: set[str] = set()
        # Equal questions asked at the same time wait for the first one's reply instead of paying twice.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def endpoint(self) -> str:
        """Return what tells this judge's server from others."""
        return REPLAY_ENDPOINT if self._provider is None else self._provider.endpoint

    async def judgment(
        self, request: ChatRequest, subject: Subject, source: tuple[str, str], limit: Limit
    ) -> Judgment:
        """Return the stored judgment on a request, or ask for one and keep it.

        Args:
            request: complete, with this run's model and parameters.
            subject: what it is about.
            source: task id and answer name.
            limit: entered around each HTTP request.
        """
        key = judgment_key(request, subject.trial)
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            stored = await self._stored(key)
            # A reply that no longer fills the template, since a script's own checks changed, is asked anew.
            if stored is not None and (self._provider is None or _fits(stored, request)):
                self.totals.reused += 1
                return stored
            if self._provider is None:
                raise JudgmentMissingError(_missing(subject, source))
            judgment = await self._ask(self._provider, key, request, subject, source, limit)
            await self._store.put(judgment)
            self._asked_now.add(key)
            return judgment

    async def _stored(self, key: str) -> Judgment | None:
        if self._overwrite and key not in self._asked_now:
            return None
        endpoint = self.settings.replayed_endpoint if self._provider is None else self.endpoint
        return await self._store.get(key, endpoint)

    async def _ask(
        self,
        provider: ChatProvider,
        key: str,
        request: ChatRequest,
        subject: Subject,
        source: tuple[str, str],
        limit: Limit,
    ) -> Judgment:
        started = time.monotonic()
        outcome: Literal["reply", "declined", "too_long"]
        try:
            reply = await ask_twice_if_declined(provider.chat, request, limit)
            outcome = "reply" if reply.declined is None else "declined"
        except ContextTooLongError as error:
            reply, outcome = ChatReply(text=str(error)), "too_long"
        self._count(reply, request.model)
        return Judgment(
            key=key,
            endpoint=self.endpoint,
            model=request.model,
            temperature=request.temperature,
            reasoning_effort=request.reasoning_effort,
            outcome=outcome,
            text=reply.declined or reply.text,
            served_model=reply.served_model,
            system_fingerprint=reply.system_fingerprint,
            input_tokens=reply.usage.input_tokens,
            cached_tokens=reply.usage.cached_tokens,
            cache_write_tokens=reply.usage.cache_write_tokens,
            output_tokens=reply.usage.output_tokens,
            attempts=reply.attempts,
            seconds=round(time.monotonic() - started, 3),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )

    async def gate(
        self, subject: Subject, source: tuple[str, str], ordinal: int, skip_reason: str | None
    ) -> str | None:
        """Record whether a verification is skipped; in a replay, return what was recorded."""
        judge = (self.settings.model, self.settings.temperature, self.settings.reasoning_effort)
        key = gate_key(judge, *source, subject.node, subject.claim, ordinal)
        if self._provider is None:
            recorded = await self._store.get(key, self.settings.replayed_endpoint)
            return skip_reason if recorded is None else recorded.text or None
        await self._store.put(
            Judgment(
                key=key,
                endpoint=self.endpoint,
                model=self.settings.model,
                temperature=self.settings.temperature,
                reasoning_effort=self.settings.reasoning_effort,
                outcome="asked" if skip_reason is None else "skipped",
                text=skip_reason or "",
                attempts=0,
                created=datetime.now(UTC).isoformat(timespec="milliseconds"),
                task_id=source[0],
                answer_name=source[1],
                purpose="gate",
                node=subject.node,
                claim=subject.claim,
            )
        )
        return skip_reason

    def _count(self, reply: ChatReply, model: str) -> None:
        self.totals.asked += 1
        self.totals.requests += reply.attempts
        self.totals.usage += reply.usage
        self.totals.cost_usd = add_cost(self.totals.cost_usd, reply.usage, model)


class AnswerJudge(AsyncCalls):
    """The client that one answer's script is given: the run's judge, whatever model the script names.

    Args:
        run: the run's judge.
        limit: entered around each HTTP request. It is the run's own: a script that holds the semaphore it
            was given never waits for itself.
    """

    def __init__(
        self, run: RecordedJudge, task_id: str, answer_name: str, limit: Limit | None = None
    ) -> None:
        self._run = run
        self._source = (task_id, answer_name)
        self._limit = limit
        self._own_requests: dict[str, int] = {}
        self._gates: dict[tuple[str | None, str | None], int] = {}
        self._latch = FailureLatch()
        self.ledger = JudgeLedger()

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good."""
        return self._latch.failure

    @property
    def endpoint(self) -> str:
        """Return what tells this judge's server from others."""
        return self._run.endpoint

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, cli.md)
        """Return the run's model."""
        return self._run.settings.model

    def response(self, **_keywords: Any) -> Any:
        """Refuse: this client is asynchronous (contract.md)."""
        raise ValueError("this client is asynchronous: use await client.async_response(...)")

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own; the same one again is another trial."""
        trial = self._own_requests[judgment_key(request, 0)] = (
            self._own_requests.get(judgment_key(request, 0), 0) + 1
        )
        try:
            return await self.ask(request, Subject("script", trial=trial), None)
        except ContextTooLongError as error:
            raise self.fail(error) from error.__cause__

    async def ask(
        self,
        request: ChatRequest,
        subject: Subject,
        limit: Limit | None,  # noqa: ARG002 (the run's own is entered)
    ) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self._latch.check()
        settings = self._run.settings
        request = replace(
            request,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
        )
        try:
            latched = LatchedLimit(self._limit, self._latch)
            judgment = await self._run.judgment(request, subject, self._source, latched)
            reply = _as_reply(judgment, request)
        except JudgeError as error:
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        self._note(judgment, reply, subject)
        if judgment.outcome == "too_long":
            raise ContextTooLongError(judgment.text)
        return reply

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good."""
        return self._latch.fail(failure)

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Record or recall whether a verification is skipped, as ``Judge.gate`` promises."""
        same = (subject.node, subject.claim)
        self._gates[same] = self._gates.get(same, 0) + 1
        try:
            return await self._run.gate(subject, self._source, self._gates[same], skip_reason)
        except JudgeError as error:
            raise self.fail(error) from error.__cause__

    def _note(self, judgment: Judgment, reply: ChatReply, subject: Subject) -> None:
        self.ledger.judgments += 1
        self.ledger.usage += reply.usage
        self.ledger.cost_usd = add_cost(self.ledger.cost_usd, reply.usage, judgment.model)
        note_rejection(self.ledger, reply, subject)


def add_cost(so_far: float | None, usage: TokenUsage, model: str) -> float | None:
    """Return dollars with one more reply's; unknown once a model's price is unknown."""
    price = price_usd(usage, model)
    return None if so_far is None or price is None else so_far + price


def _fits(judgment: Judgment, request: ChatRequest) -> bool:
    if judgment.outcome != "reply" or request.template is None:
        return True
    try:
        request.template.model_validate_json(judgment.text)
    except ValidationError:
        return False
    return True


def _as_reply(judgment: Judgment, request: ChatRequest) -> ChatReply:
    value = None
    if judgment.outcome == "reply" and request.template is not None:
        try:
            value = request.template.model_validate_json(judgment.text)
        except ValidationError as error:
            raise JudgmentMissingError(
                f"stored judgment on {judgment.node!r} does not fill {request.template.__name__}; "
                "run with --overwrite to ask anew"
            ) from error
    return ChatReply(
        text=judgment.text,
        value=value,
        declined=judgment.text if judgment.outcome == "declined" else None,
        usage=TokenUsage(
            judgment.input_tokens,
            judgment.cached_tokens,
            judgment.output_tokens,
            judgment.cache_write_tokens,
        ),
        served_model=judgment.served_model,
        system_fingerprint=judgment.system_fingerprint,
        attempts=judgment.attempts,
    )


def _missing(subject: Subject, source: tuple[str, str]) -> str:
    about = f"claim {_shortened(subject.claim)!r}" if subject.claim else f"{subject.purpose} {subject.node!r}"
    page = f" on {subject.page}" if subject.page else ""
    return (
        f"no stored judgment on {about}{page} (node {subject.node!r}, trial {subject.trial}, "
        f"{source[0]}/{source[1]}); evaluate with a judge instead of --llm_provider replay"
    )


def _shortened(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
