"""A run's judge with its memory: stored judgments are reused, new ones are kept as they arrive."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol
from weakref import WeakValueDictionary

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    EvalScriptError,
    JudgeError,
    JudgmentMissingError,
    JudgmentStoreError,
    Mind2Web2Error,
)
from mind2web2.judge import (
    Failure,
    FailureLatch,
    JudgeLedger,
    LatchedLimit,
    Subject,
    ask_twice_if_declined,
    current_latch,
    current_ledger,
    note_rejection,
    unexpected,
)
from mind2web2.judgments import Judgment, JudgmentStore, gate_key, judgment_key
from mind2web2.llm_client.calls import AsyncCalls
from mind2web2.llm_client.chat import ChatProvider, ChatReply, ChatRequest, Limit, TokenUsage
from mind2web2.llm_client.pacing import Slowdown
from mind2web2.llm_client.prices import price_usd, total_price_usd
from mind2web2.llm_client.toll import Retries, Toll, toll_counted
from mind2web2.program_order import check_look
from mind2web2.reply_keeping import ReplyKeeper
from mind2web2.speculation import Requests, asked_ahead
from mind2web2.spending import Budget
from mind2web2.usage import RunUsage, sum_usd

log = logging.getLogger(__name__)

REPLAY_ENDPOINT = "replay"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges a run, and with which parameters.

    Args:
        provider: as given on the command line.
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any server's.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
        batch: questions go out in batch jobs, at a lower price.
    """

    provider: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    replayed_endpoint: str | None = None
    batch: bool = False


@dataclass(slots=True)
class RunTotals:
    """What a run has asked so far.

    Args:
        asked: judgments that a model was asked for.
        reused: judgments that were stored already.
        requests: HTTP requests, retries and repairs included, also those that came to nothing.
        usage: tokens of what was asked in this run.
        cost_usd: ``None`` once a model without a known price was asked.
        dropped: what of that was judged ahead of time and then skipped.
        slowdown: how much the judge's rate limits have held the run back.
        retries: how often requests were sent again, and why.
    """

    asked: int = 0
    reused: int = 0
    requests: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0
    dropped: Requests = field(default_factory=Requests)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)


class RecordedJudge:
    """One judge for a whole run.

    Args:
        settings: model and parameters.
        provider: whom to ask; ``None`` answers from the store alone (replay).
        store: where judgments are kept.
        overwrite: reuse only what this run itself has asked.
        budget: what the requests may cost; ``None`` for any amount.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        provider: ChatProvider | None,
        store: JudgmentStore,
        *,
        overwrite: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self.settings = settings
        if provider is not None:
            # The price list takes a third of a second to load: now, rather than with the first reply.
            price_usd(TokenUsage(), settings.model)
        # Only clients of this package keep a pace, and count along.
        self.totals = RunTotals(
            slowdown=getattr(provider, "slowdown", None) or Slowdown(),
            retries=getattr(provider, "retries", None) or Retries(),
        )
        self.usage = RunUsage()
        self.budget = budget
        self._provider = provider
        self._store = store
        self._keeper = ReplyKeeper(store)
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
        async with turn, self._turn_among_processes(key):
            stored = await self._stored(key)
            # A reply that no longer fills the template, since a script's own checks changed, is asked anew.
            if stored is not None and (self._provider is None or await _fits(stored, request)):
                self.totals.reused += 1
                self._count_reused(stored, source[0])
                return stored
            if self._provider is None:
                raise JudgmentMissingError(_missing(subject, source))
            await self._keeper.write_rest()
            request = replace(request, name=key)
            judgment = await self._ask(self._provider, key, request, subject, source, limit)
            await self._keeper.keep(judgment)
            self._asked_now.add(key)
            return judgment

    async def write_rest(self) -> None:
        """Store what was asked and could not be stored at the time.

        Raises:
            JudgmentStoreError: it cannot be stored now either; the text says how much that is.
        """
        try:
            await self._keeper.write_rest()
        except JudgmentStoreError as error:
            raise JudgmentStoreError(
                f"judge replies that could not be kept: {self._keeper.unwritten}, to be asked anew: {error}"
            ) from error

    def _turn_among_processes(self, key: str) -> AbstractAsyncContextManager[None]:
        # A batch may take a day, for which nobody else is to wait.
        if self._provider is None or self.settings.batch:
            return nullcontext()
        return self._store.turns.turn(key)

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
        exchange = None if self.budget is None else self.budget.exchange(request, limit)
        if (ahead := asked_ahead()) is not None:
            ahead.sent += 1
        with toll_counted() as toll:
            try:
                reply = await ask_twice_if_declined(provider.chat, request, exchange or limit)
                outcome = "reply" if reply.declined is None else "declined"
            except ContextTooLongError as error:
                reply, outcome = _too_long(error, toll), "too_long"
            except BaseException:
                # A failure, or nobody waits for it any more: no judgment, but requests and tokens.
                if exchange is not None:
                    exchange.settle(toll.usages)
                self._count(_in_vain(toll), toll, request.model, source[0], judgments=0)
                raise
        if exchange is not None:
            exchange.settle(toll.usages or [reply.usage])
        cost_usd = self._count(reply, toll, request.model, source[0])
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
            batch=self.settings.batch or None,
            cost_usd=cost_usd,
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

    def _count(
        self, reply: ChatReply, toll: Toll, model: str, task_id: str, *, judgments: int = 1
    ) -> float | None:
        """Count what a question took, and return its price."""
        # A client of a caller's own tells no more than the sum.
        usages = toll.usages or [reply.usage]
        cost_usd = total_price_usd(usages, model, in_batch=self.settings.batch)
        self.usage.of(task_id).asked.add(reply.usage, reply.attempts, cost_usd, judgments, toll.untold)
        if judgments and (ahead := asked_ahead()) is not None:
            ahead.note_answer(cost_usd)
        self.totals.asked += judgments
        self.totals.requests += reply.attempts
        self.totals.usage += reply.usage
        self.totals.cost_usd = sum_usd(self.totals.cost_usd, cost_usd)
        return cost_usd

    def _count_reused(self, judgment: Judgment, task_id: str) -> None:
        cost_usd = _cost_usd(judgment)
        self.usage.of(task_id).reused.add(_usage_of(judgment), judgment.attempts, cost_usd)


class RunJudging(Protocol):
    """What the judge of one answer asks of the run's: ``RecordedJudge``, or what stands for it elsewhere."""

    @property
    def settings(self) -> JudgeSettings:
        """Return model and parameters."""

    @property
    def endpoint(self) -> str:
        """Return what tells this judge's server from others."""

    async def judgment(
        self, request: ChatRequest, subject: Subject, source: tuple[str, str], limit: Limit
    ) -> Judgment:
        """Return a judgment, as ``RecordedJudge.judgment`` promises."""

    async def gate(
        self, subject: Subject, source: tuple[str, str], ordinal: int, skip_reason: str | None
    ) -> str | None:
        """Return why a verification is skipped, as ``RecordedJudge.gate`` promises."""


class AnswerJudge(AsyncCalls):
    """The client that one answer's script is given: the run's judge, whatever model the script names.

    Args:
        run: the run's judge.
        limit: entered around each HTTP request. It is the run's own: a script that holds the semaphore it
            was given never waits for itself.
    """

    def __init__(self, run: RunJudging, task_id: str, answer_name: str, limit: Limit | None = None) -> None:
        self._run = run
        self._source = (task_id, answer_name)
        self._limit = limit
        self._own_requests: dict[str, int] = {}
        self._gates: dict[tuple[str | None, str | None], int] = {}
        self._latch = FailureLatch()
        self._ledger = JudgeLedger()

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far."""
        check_look("what the judge has been asked")
        return self._ledger

    def count(self, ledger: JudgeLedger) -> None:
        """Count what another ledger has as well."""
        current_ledger(self._ledger).add(ledger)

    def start_over(self) -> None:
        """Forget what has been asked: the same evaluation begins again."""
        self._own_requests.clear()
        self._gates.clear()
        self._ledger = JudgeLedger()

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good."""
        check_look("whether the judge has failed")
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
        except (ContextTooLongError, JudgmentMissingError) as error:
            raise self.fail(error) from error.__cause__

    async def ask(
        self,
        request: ChatRequest,
        subject: Subject,
        limit: Limit | None,  # noqa: ARG002 (the run's own is entered)
    ) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        latch = current_latch(self._latch)
        latch.check()
        settings = self._run.settings
        request = replace(
            request,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
        )
        try:
            latched = LatchedLimit(self._limit, latch)
            judgment = await self._run.judgment(request, subject, self._source, latched)
            reply = _as_reply(judgment, request)
        except JudgmentMissingError:
            raise
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
        return current_latch(self._latch).fail(failure)

    def end(self) -> None:
        """Ask no more, as the evaluation is over: that is for tasks that the script has left behind."""
        self._latch.fail(EvalScriptError("the evaluation is over"))

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Record or recall whether a verification is skipped, as ``Judge.gate`` promises."""
        same = (subject.node, subject.claim)
        self._gates[same] = self._gates.get(same, 0) + 1
        try:
            return await self._run.gate(subject, self._source, self._gates[same], skip_reason)
        except JudgeError as error:
            raise self.fail(error) from error.__cause__

    def _note(self, judgment: Judgment, reply: ChatReply, subject: Subject) -> None:
        ledger = current_ledger(self._ledger)
        ledger.judgments += 1
        ledger.requests += reply.attempts
        ledger.served[reply.served_model, reply.system_fingerprint] += 1
        ledger.note_created(judgment.created)
        ledger.usage += reply.usage
        ledger.cost_usd = sum_usd(ledger.cost_usd, _cost_usd(judgment))
        note_rejection(ledger, reply, subject)


def _cost_usd(judgment: Judgment) -> float | None:
    """Return what a judgment cost when it was asked, as far as that is known."""
    if judgment.cost_usd is not None:
        return judgment.cost_usd
    return total_price_usd([_usage_of(judgment)], judgment.model, in_batch=bool(judgment.batch))


def _too_long(error: ContextTooLongError, toll: Toll) -> ChatReply:
    return ChatReply(text=str(error), usage=toll.usage, attempts=max(toll.requests, 1))


def _in_vain(toll: Toll) -> ChatReply:
    return ChatReply(text="", usage=toll.usage, attempts=toll.requests)


async def _fits(judgment: Judgment, request: ChatRequest) -> bool:
    if judgment.outcome != "reply" or request.template is None:
        return True
    try:
        request.template.model_validate_json(judgment.text)
    except ValidationError:
        return False
    return request.check is None or await request.check(judgment.text) is None


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
        usage=_usage_of(judgment),
        served_model=judgment.served_model,
        system_fingerprint=judgment.system_fingerprint,
        attempts=judgment.attempts,
        judgment=judgment.key,
    )


def _usage_of(judgment: Judgment) -> TokenUsage:
    return TokenUsage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
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
