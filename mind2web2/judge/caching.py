"""The judge of a run, which reuses stored judgments and stores new ones."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeUnavailableError,
    JudgeUnusableError,
    JudgmentMissingError,
    JudgmentStoreError,
)
from mind2web2.judge.judgment import Judgment, judgment_key
from mind2web2.judge.permit import AnswerLimits, CircuitBreaker, Permit
from mind2web2.judge.protocol import (
    AskedQuestion,
    QuestionContext,
    QuestionObserver,
)
from mind2web2.judge.record import REPLAY, JudgeIdentity, JudgeRecord
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.chat import (
    ChatProvider,
    ChatReply,
    ChatRequest,
    MeasuredProvider,
    SentRequests,
    Usage,
    chat_twice,
)
from mind2web2.llm_client.prices import price_usd, total_price_usd
from mind2web2.utils.aio import to_the_end
from mind2web2.utils.text import counted, cut

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget

# Of a claim, in a message.
_SHOWN_CHARS = 80


class CachingJudge:
    """The judge of a whole run: stored judgments are reused, new ones are stored as they arrive.

    Args:
        provider: sends requests; ``None`` answers from the store alone (replay).
        overwrite: reuse only judgments that this run has requested itself.
        observer: is called after each question that was sent.
    """

    def __init__(
        self,
        settings: JudgeSpec,
        provider: ChatProvider | None,
        store: JudgmentStore,
        *,
        overwrite: bool = False,
        budget: Budget | None = None,
        observer: QuestionObserver | None = None,
    ) -> None:
        if provider is not None:
            # Loading the price list takes a third of a second: now, rather than with the first
            # reply.
            price_usd(Usage(), settings.model, settings.own_price)
        self.settings = settings
        self.price = settings.own_price
        self.shows_images = settings.shows_images
        self._keyed_body = settings.keyed_body
        self._extra = settings.parameters
        self._price_share = settings.price_share
        self._keyed_extra = json.loads(self._keyed_body or "{}")
        self.usage = RunUsage()
        if isinstance(provider, MeasuredProvider):
            self.usage = RunUsage(slowdown=provider.slowdown, retries=provider.retries)
        self.budget = budget
        self.endpoint = REPLAY if provider is None else provider.endpoint
        # A replay takes the judgments of the server that it names, or of any.
        self._stored_endpoint = (
            settings.replayed_endpoint if provider is None else provider.endpoint
        )
        self._provider = provider
        # Only providers of this package say whether their server is there.
        self._measured = provider if isinstance(provider, MeasuredProvider) else None
        self._observer = observer
        self._store = store
        self._overwrite = overwrite
        self._breaker = CircuitBreaker()
        # Before the first request of a run; stored judgments need no server.
        self._checking, self._is_checked = asyncio.Lock(), False
        self._unreachable: JudgeUnusableError | None = None
        self._asked_now: set[str] = set()
        # The usage of judgments that no result of the run rests on.
        self.spent_for_nothing = Usage()
        # Replies that a full disk did not take. No request follows until they are written.
        self._unwritten: dict[str, _Unwritten] = {}
        self._writing = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def is_replay(self) -> bool:
        """Tell whether only stored judgments answer."""
        return self._provider is None

    @property
    def record(self) -> JudgeRecord:
        """Return the judge as results record it."""
        return self.settings.record(self.endpoint)

    def in_words(self) -> str:
        """Return who judges, for the report of a run."""
        return f"Judge: {self.settings.model} ({self.endpoint})"

    @cached_property
    def identity(self) -> JudgeIdentity:
        """Return the judge whose judgments these are, also in a replay."""
        replayed = self.settings.replayed_endpoint if self.is_replay else None
        return self.settings.identity(replayed or self.endpoint)

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,
    ) -> Judgment:
        """Return the stored judgment on a request, or request one and store it.

        Args:
            request: this run's model and parameters take the place of its own.
            source: task id and answer name.
        """
        extra, request = request.extra, self.keyed(request)
        key = judgment_key(request, subject.trial)
        lock = self.turn_of(key)
        while True:
            async with lock:
                stored = await self.stored(key, self._stored_endpoint)
                # If a script's own checks changed, a stored reply may no longer fill the template.
                if stored is not None and (self.is_replay or await _fits(stored, request)):
                    self.usage.tasks[source[0]].reused += stored.usage(self.price)
                    return stored
                if self._provider is None:
                    raise JudgmentMissingError(_missing(subject, source))
                if limits.turn is None or limits.turn.has_come():
                    sent = replace(
                        request,
                        name=key,
                        extra={**extra, **self._extra},
                        sent=SentRequests(),
                    )
                    return await self._asked(self._provider, sent, subject, source, limits, stored)
            # Without the lock: the question that comes first may be the same one.
            await asyncio.shield(limits.turn.is_asked)

    def keyed(self, request: ChatRequest) -> ChatRequest:
        """Return a request with the model and parameters of this judge, by which it is stored."""
        settings = self.settings
        return replace(
            request,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            extra={**request.extra, **self._keyed_extra},
        )

    def turn_of(self, key: str) -> asyncio.Lock:
        """Return the lock of a question: an equal one waits for the first one's reply."""
        return self._turns.setdefault(key, asyncio.Lock())

    async def stored(self, key: str, endpoint: str | None) -> Judgment | None:
        """Return the stored reply of an endpoint that counts in this run, or of any."""
        if key in self._unwritten:
            await self._write_unwritten()
        if self._overwrite and key not in self._asked_now:
            return None
        return await self._store.get(key, endpoint)

    async def keep(self, judgment: Judgment, instead_of: Judgment | None) -> Judgment:
        """Store a reply, even if the caller is cancelled, and return the one that is stored."""
        return await to_the_end(self._write(judgment, instead_of))

    async def _asked(
        self,
        provider: ChatProvider,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,
        stored: Judgment | None,
    ) -> Judgment:
        """Request a judgment and store it in place of one that does not fit."""
        if self._unwritten:
            await self._write_unwritten()
        if not self._is_checked or self._unreachable is not None:
            await self.check_reachable()
        permit = Permit(limits, self._breaker)
        if self.budget is not None:
            permit = self.budget.permit(request, limits, self._breaker)
        async with aclosing(permit):
            judgment = await self._ask(provider, request, subject, source, permit)
            kept = await self.keep(judgment, stored)
            # Each further round means that another run has stored its reply, and is done.
            while kept != judgment and not await _fits(kept, request):
                kept = await self.keep(judgment, kept)
        limits.asked.append(kept)
        return kept

    def raise_if_unusable(self) -> None:
        """Raise ``JudgeUnusableError`` if the judge is unreachable or has rejected all requests."""
        if self._unreachable is not None:
            raise self._unreachable
        total = self.usage.total()
        if (
            self._breaker.reason is not None
            and not total.asked.judgments
            and not total.reused.judgments
        ):
            raise JudgeUnusableError(str(self._breaker.reason)) from self._breaker.reason

    def raise_if_out(self) -> None:
        """Raise ``JudgeUnavailableError`` if the server is out for longer than the run waits."""
        if self._breaker.outage is not None:
            raise JudgeUnavailableError(str(self._breaker.outage), is_outage=True)

    def try_again(self) -> None:
        """Send requests again although the judge was unreachable or has rejected requests."""
        self._breaker = CircuitBreaker()
        self._unreachable, self._is_checked = None, False

    async def write_rest(self) -> None:
        """Store replies that could not be stored before, or that are still to come.

        Raises:
            JudgmentStoreError: they still cannot; the text gives their number.
        """
        try:
            await self._write_unwritten()
        except JudgmentStoreError as error:
            raise JudgmentStoreError(
                f"{counted(len(self._unwritten), 'judge reply')} not stored, to be requested "
                f"again: {error}"
            ) from error

    async def _write_unwritten(self) -> None:
        async with self._writing:
            for left in list(self._unwritten.values()):
                await self.keep(left.judgment, left.instead_of)

    async def _write(self, judgment: Judgment, instead_of: Judgment | None) -> Judgment:
        """Store a judgment and return the stored one.

        Another run's judgment stays, unless it was read and does not count (``instead_of``).
        """
        kept = judgment
        try:
            if self._overwrite:
                await self._store.put(judgment)
                self._asked_now.add(judgment.key)
            else:
                kept = await self._store.keep(judgment, instead_of)
        except JudgmentStoreError:
            self._unwritten[judgment.key] = _Unwritten(judgment, instead_of)
            raise
        self._unwritten.pop(judgment.key, None)
        return kept

    async def check_reachable(self) -> None:
        """Check once in a run that the judge's server accepts connections.

        Raises:
            JudgeAccessError: it does not.
        """
        async with self._checking:
            if self._measured is not None and not self._is_checked:
                try:
                    await self._measured.check_reachable()
                except JudgeUnusableError as error:
                    self._unreachable = error
            self._is_checked = True
        if self._unreachable is not None:
            raise JudgeAccessError(str(self._unreachable), is_for_all=True) from self._unreachable

    async def _ask(
        self,
        provider: ChatProvider,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        permit: Permit,
    ) -> Judgment:
        called_ns, sent = time.time_ns(), request.sent
        asked = AskedQuestion(request, subject, source, self.endpoint, called_ns)
        is_too_long = False
        try:
            reply = await chat_twice(provider, request, permit)
        except ContextTooLongError as error:
            reply = ChatReply(text=str(error), usage=sent.usage, attempts=max(sent.requests, 1))
            is_too_long = True
        except BaseException as error:
            # A failure or a cancelled caller: no judgment, but requests and tokens.
            self._breaker.note_failure(error, source)
            permit.settle(sent.replies)
            self._count(_no_reply(sent), sent, source[0], judgments=0)
            self._observe(asked, failure=error)
            raise
        self._breaker.note_reply()
        permit.settle(sent.replies or [reply.usage])
        judgment = self._as_judgment(asked, reply, is_too_long=is_too_long)
        self._observe(asked, judgment)
        return judgment

    def _as_judgment(
        self, asked: AskedQuestion, reply: ChatReply, *, is_too_long: bool
    ) -> Judgment:
        subject, (task_id, answer_name) = asked.subject, asked.source
        outcome = "declined" if reply.declined is not None else "reply"
        return Judgment(
            key=asked.request.name,
            **dict(self.identity),
            outcome="too_long" if is_too_long else outcome,
            text=reply.declined or reply.text,
            served_model=reply.served_model,
            system_fingerprint=reply.system_fingerprint,
            input_tokens=reply.usage.input_tokens,
            cached_tokens=reply.usage.cached_tokens,
            cache_write_tokens=reply.usage.cache_write_tokens,
            output_tokens=reply.usage.output_tokens,
            attempts=reply.attempts,
            images=reply.images,
            batch=self._price_share < 1 or None,
            cost_usd=self._count(reply, asked.request.sent, task_id, judgments=1),
            seconds=round((time.time_ns() - asked.started_ns) / 1e9, 3),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            task_id=task_id,
            answer_name=answer_name,
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )

    def _observe(
        self,
        asked: AskedQuestion,
        judgment: Judgment | None = None,
        failure: BaseException | None = None,
    ) -> None:
        """Tell the observer of a question that was sent, and what it came to."""
        sent_ns = asked.request.sent.first_sent_ns
        # A client that does not count its requests, such as a foreign one, has sent one that is
        # answered.
        if self._observer is not None and (sent_ns is not None or judgment is not None):
            started_ns = sent_ns or asked.started_ns
            told = replace(asked, started_ns=started_ns, judgment=judgment, failure=failure)
            self._observer(told)

    def _count(
        self, reply: ChatReply, sent: SentRequests, task_id: str, *, judgments: int
    ) -> float | None:
        """Add the usage of a question to the task's, and return its price."""
        # A foreign client reports only the sum.
        usages = sent.replies or [reply.usage]
        cost_usd = total_price_usd(
            usages, self.settings.model, share=self._price_share, own=self.price
        )
        self.usage.tasks[task_id].asked += replace(
            reply.usage,
            judgments=judgments,
            requests=reply.attempts,
            unreported_requests=sent.unreported,
            cost_usd=cost_usd,
        )
        return cost_usd


class _Unwritten(NamedTuple):
    """A judgment to store, and the one that it may replace."""

    judgment: Judgment
    instead_of: Judgment | None


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


def _missing(subject: QuestionContext, source: tuple[str, str]) -> str:
    about = (
        f"claim {cut(subject.claim, _SHOWN_CHARS)!r}"
        if subject.claim
        else f"{subject.purpose} {subject.node!r}"
    )
    page = f" on {subject.page}" if subject.page else ""
    return (
        f"no stored judgment on {about}{page} (node {subject.node!r}, trial {subject.trial}, "
        f"{source[0]}/{source[1]}); evaluate with a judge instead of --llm_provider replay"
    )
