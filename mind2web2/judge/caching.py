"""A run's judge with its memory: stored judgments are reused, new ones are kept as they arrive."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal
from weakref import WeakValueDictionary

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    ImagesRefusedError,
    JudgeAccessError,
    JudgeUnusableError,
    JudgmentMissingError,
    JudgmentStoreError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.circuit_breaker import Access
from mind2web2.judge.protocol import Subject, ask_twice_if_declined
from mind2web2.judge.records import Judgment, JudgmentSource, gate_key, judgment_key
from mind2web2.judge.services import ServiceAnswers
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.usage import RunUsage, usage_of
from mind2web2.llm_client.chat import ChatProvider, ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.llm_client.prices import price_usd, total_price_usd
from mind2web2.llm_client.rate_limiter import Slowdown
from mind2web2.llm_client.retry import Retries, SentRequests, counted_requests
from mind2web2.utils.aio import loop_turn, to_the_end


class ReplyKeeper:
    """Writes judgments to the store, and holds on to those that a full disk does not take.

    Until those are written nothing more should be asked: what comes back could not be kept either.
    """

    def __init__(self, store: JudgmentStore) -> None:
        self._store = store
        self._unwritten: dict[str, Judgment] = {}
        self._writing = asyncio.Lock()

    @property
    def unwritten(self) -> int:
        """Return how many judgments the store did not take yet."""
        return len(self._unwritten)

    async def keep(self, judgment: Judgment) -> None:
        """Write a judgment, even if the caller is cancelled meanwhile.

        Raises:
            JudgmentStoreError: it cannot be written now.
        """
        await to_the_end(self._write(judgment))

    async def write_rest(self) -> None:
        """Write what could not be written so far.

        Raises:
            JudgmentStoreError: it still cannot.
        """
        if self._unwritten:
            async with self._writing:
                for judgment in list(self._unwritten.values()):
                    await to_the_end(self._write(judgment))

    async def _write(self, judgment: Judgment) -> None:
        try:
            await self._store.put(judgment)
        except JudgmentStoreError:
            self._unwritten[judgment.key] = judgment
            raise
        self._unwritten.pop(judgment.key, None)


log = logging.getLogger(__name__)

REPLAY_ENDPOINT = "replay"


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges a run, and with which parameters.

    Args:
        provider: as given on the command line.
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any server's.
        replayed_from: for a replay, the file of its judgments.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
        batch: questions go out in batch jobs, at a lower price.
        max_images: shown with one question at most, 0 for none; ``None`` shows all that the judge takes.
        image_limits: of a replay, those that the judge named when it was asked; found in the store.
    """

    provider: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    replayed_endpoint: str | None = None
    replayed_from: JudgmentSource | None = None
    batch: bool = False
    max_images: int | None = None
    image_limits: tuple[ImageLimit, ...] = ()


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
        if provider is None:
            limits = store.image_limits(settings.replayed_endpoint, settings.model)
            settings = replace(settings, image_limits=tuple(limits))
        self.settings = settings
        if provider is not None:
            # The price list takes a third of a second to load: now, rather than with the first reply.
            price_usd(Usage(), settings.model)
        # Only clients of this package keep a pace, and count along.
        self.usage = RunUsage(
            slowdown=getattr(provider, "slowdown", None) or Slowdown(),
            retries=getattr(provider, "retries", None) or Retries(),
        )
        self.budget = budget
        self.services = ServiceAnswers(store, overwrite=overwrite, is_replay=provider is None)
        self._provider = provider
        self._store = store
        self._keeper = ReplyKeeper(store)
        # Questions that are let in one by one would take a batch job each.
        self._access = Access(one_by_one=not settings.batch)
        self._overwrite = overwrite
        # Once in a run, before the first request, as stored judgments need no server.
        self._checking, self._is_checked = asyncio.Lock(), False
        self._unreachable: JudgeUnusableError | None = None
        self._asked_now: set[str] = set()
        # Equal questions asked at the same time wait for the first one's reply instead of paying twice.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def is_replay(self) -> bool:
        """Tell whether only stored judgments answer."""
        return self._provider is None

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
        await loop_turn()
        key = judgment_key(request, subject.trial)
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            stored = await self._stored(key)
            # A reply that no longer fills the template, since a script's own checks changed, is asked anew.
            if stored is not None and (self._provider is None or await _fits(stored, request)):
                if stored.outcome != "fewer_images":
                    self.usage.of(source[0]).reused += usage_of(stored)
                return stored
            if self._provider is None:
                raise JudgmentMissingError(_missing(subject, source))
            await self._keeper.write_rest()
            await self.check_reachable()
            request = replace(request, name=key)
            judgment = await self._ask(self._provider, key, request, subject, source, limit)
            await self._keeper.keep(judgment)
            self._asked_now.add(key)
            return judgment

    def raise_if_unusable(self) -> None:
        """Raise ``JudgeUnusableError`` if the judge is unreachable or has rejected all requests."""
        if self._unreachable is not None:
            raise self._unreachable
        total = self.usage.total()
        if self._access.denial is not None and not total.asked.judgments and not total.reused.judgments:
            raise JudgeUnusableError(str(self._access.denial)) from self._access.denial

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

    async def check_reachable(self) -> None:
        """Check once in a run that the judge's server accepts connections.

        Raises:
            JudgeAccessError: it does not.
        """
        # Only clients of this package can check it.
        check = getattr(self._provider, "check_reachable", None)
        async with self._checking:
            if check is not None and not self._is_checked:
                try:
                    await check()
                except JudgeUnusableError as error:
                    self._unreachable = error
            self._is_checked = True
        if self._unreachable is not None:
            raise JudgeAccessError(str(self._unreachable), is_for_all=True) from self._unreachable

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
        outcome: Literal["reply", "declined", "too_long", "fewer_images"]
        limit = self._access.limit(limit)
        exchange = None if self.budget is None else self.budget.exchange(request, limit)
        with counted_requests() as sent:
            try:
                reply = await ask_twice_if_declined(provider.chat, request, exchange or limit)
                outcome = "reply" if reply.declined is None else "declined"
            except ContextTooLongError as error:
                reply, outcome = _too_long(error, sent), "too_long"
            except ImagesRefusedError as error:
                limits = ImageLimit.of(error).model_dump_json()
                reply, outcome = replace(_no_reply(sent), text=limits), "fewer_images"
            except BaseException as error:
                self._access.note(error, source)
                # A failure, or nobody waits for it any more: no judgment, but requests and tokens.
                if exchange is not None:
                    exchange.settle(sent.replies)
                self._count(_no_reply(sent), sent, request.model, source[0], judgments=0)
                raise
        self._access.prove()
        if exchange is not None:
            exchange.settle(sent.replies or [reply.usage])
        # To be refused for its images is no judgment yet.
        count = int(outcome != "fewer_images")
        cost_usd = self._count(reply, sent, request.model, source[0], judgments=count)
        return Judgment(
            key=key,
            endpoint=self.endpoint,
            model=request.model,
            temperature=request.temperature,
            reasoning_effort=request.reasoning_effort,
            max_images=self.settings.max_images,
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
        settings = self.settings
        judge: tuple[object, ...] = (settings.model, settings.temperature, settings.reasoning_effort)
        judge += () if settings.max_images is None else (settings.max_images,)
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
                max_images=self.settings.max_images,
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
        self, reply: ChatReply, sent: SentRequests, model: str, task_id: str, *, judgments: int = 1
    ) -> float | None:
        """Count the usage of a question, and return its price."""
        # A client of a caller's own reports no more than the sum.
        cost_usd = total_price_usd(sent.replies or [reply.usage], model, in_batch=self.settings.batch)
        self.usage.of(task_id).asked += replace(
            reply.usage,
            judgments=judgments,
            requests=reply.attempts,
            unreported_requests=sent.usage.unreported_requests,
            cost_usd=cost_usd,
        )
        return cost_usd


def _too_long(error: ContextTooLongError, sent: SentRequests) -> ChatReply:
    return ChatReply(text=str(error), usage=sent.usage, attempts=max(sent.requests, 1))


def _no_reply(sent: SentRequests) -> ChatReply:
    return ChatReply(text="", usage=sent.usage, attempts=sent.requests)


async def _fits(judgment: Judgment, request: ChatRequest) -> bool:
    if judgment.outcome != "reply" or request.template is None:
        return True
    try:
        request.template.model_validate_json(judgment.text)
    except ValidationError:
        return False
    return request.check is None or await request.check(judgment.text) is None


def _missing(subject: Subject, source: tuple[str, str]) -> str:
    about = f"claim {_shortened(subject.claim)!r}" if subject.claim else f"{subject.purpose} {subject.node!r}"
    page = f" on {subject.page}" if subject.page else ""
    return (
        f"no stored judgment on {about}{page} (node {subject.node!r}, trial {subject.trial}, "
        f"{source[0]}/{source[1]}); evaluate with a judge instead of --llm_provider replay"
    )


def _shortened(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
