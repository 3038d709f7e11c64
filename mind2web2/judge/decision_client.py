"""A decision model as a judge: the claims on a page are collected for a moment, and asked in one request.

Each claim keeps its own question, judgment and key, as with any judge (``judge/caching.py``). What differs is
how it is sent: the first questions on a page wait until no further one has come for a moment. The tokens of
the request are shared among its questions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from mind2web2.errors import JudgeError, JudgeOutputError, JudgeRequestError
from mind2web2.judge.cascade import ALONE, ASKED
from mind2web2.judge.permit import Permit
from mind2web2.judge.session import unexpected
from mind2web2.judge.store import judgment_key
from mind2web2.llm_client.chat import (
    ChatReply,
    ChatRequest,
    CheckedMessage,
    ImagePart,
    Limit,
    TextPart,
    Usage,
)
from mind2web2.llm_client.decisions import DecisionRequest, DecisionTransport
from mind2web2.llm_client.failures import RequestFailedError, judge_error, one_line
from mind2web2.llm_client.messages import checked_messages
from mind2web2.llm_client.provider import AsyncProviderClient
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.llm_client.structured_output import InvalidOutputError
from mind2web2.llm_client.transport import Completion

log = logging.getLogger(__name__)

# A page's claims arrive together once the page is prepared; those that are later go into the next request.
_QUIET_S = 0.1
# Most requests for a reply that can be read.
_REPLY_TRIES = 3


@dataclass(eq=False)
class _Asked:
    """A question that waits for its answer."""

    request: ChatRequest
    question: str
    limit: Limit | None
    answer: asyncio.Future[ChatReply]

    def fail(self, error: BaseException) -> None:
        """Raise an error where the answer is waited for."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(eq=False)
class _Group:
    """Questions about one text that are sent together."""

    key: str
    model: str
    state: list[CheckedMessage]
    waiting: list[_Asked] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def still_asked(self) -> list[_Asked]:
        """Return the questions whose answer is still waited for."""
        return [each for each in self.waiting if not each.answer.done()]


class DecisionClient(AsyncProviderClient):
    """A judge that answers claims with probabilities.

    A question is a ``ChatRequest`` whose template has the field ``probability``; its last text is the
    question, and all before it the text that questions share. The task of each request belongs to the client:
    it ends with the request, with the last caller's cancellation, or with ``close``.

    Args:
        quiet_s: a request is sent when no further question about its text has come for so long.
    """

    def __init__(
        self,
        transport: DecisionTransport,
        retry: RetryPolicy | None = None,
        *,
        quiet_s: float = _QUIET_S,
    ) -> None:
        super().__init__(transport, retry or RetryPolicy())
        self._decisions = transport
        self._quiet_s = quiet_s
        self._collecting: dict[str, _Group] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer one question, together with others about the same text."""
        state, question = split_question(request)
        loop = asyncio.get_running_loop()
        asked = _Asked(request, question, limit, loop.create_future())
        group = self._joined(asked, state)
        try:
            return await asked.answer
        finally:
            # Of a cancelled caller; the others' request goes on.
            asked.answer.cancel()
            if not group.still_asked() and group.task is not None:
                self._end_collecting(group)
                group.task.cancel()

    async def close(self) -> None:
        """End the requests in flight, and close the connection pool."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().close()

    def _joined(self, asked: _Asked, state: list[CheckedMessage]) -> _Group:
        """Add a question to the request that is being collected on its text, or begin a new one."""
        request = asked.request
        key = shared_key(request, state)
        group = self._collecting.get(key)
        if group is not None and request.extra.get(ASKED) != ALONE:
            group.waiting.append(asked)
            return group
        group = _Group(key, request.model, state, [asked])
        if request.extra.get(ASKED) != ALONE:
            self._collecting[key] = group
        group.task = asyncio.create_task(self._collected_and_sent(group))
        self._tasks.add(group.task)
        group.task.add_done_callback(self._tasks.discard)
        return group

    async def _collected_and_sent(self, group: _Group) -> None:
        # No caller waits for a task that has ended.
        try:
            await self._collected(group)
            self._end_collecting(group)
            await self._sent_to_all(group)
        except asyncio.CancelledError:
            for each in group.waiting:
                each.fail(JudgeError("the judge's client was closed"))
            raise
        except Exception as error:
            for each in group.waiting:
                each.fail(unexpected(error))

    def _end_collecting(self, group: _Group) -> None:
        if self._collecting.get(group.key) is group:
            del self._collecting[group.key]

    async def _collected(self, group: _Group) -> None:
        """Wait until no further question comes, or the request is full."""
        if self._collecting.get(group.key) is not group:
            return  # its question is asked alone
        seen = 0
        while seen < len(group.waiting) < self._decisions.most_questions:
            seen = len(group.waiting)
            await asyncio.sleep(self._quiet_s)

    async def _sent_to_all(self, group: _Group) -> None:
        """Send requests until each question has an answer or a failure."""
        while asked := group.still_asked()[: self._decisions.most_questions]:
            # The order of arrival is chance: equal questions make equal requests.
            asked.sort(key=lambda each: each.question)
            leader = asked[0]
            try:
                await self._answered(group, asked)
            except JudgeError as error:
                # A permit refuses the question that it belongs to; what the server refuses concerns all.
                of_permit = not isinstance(error.__cause__, _OF_SERVER)
                for each in [leader] if of_permit else asked:
                    each.fail(error)
            finally:
                # Its caller is gone, which would have paid and given the place back.
                if leader.answer.cancelled() and isinstance(leader.limit, Permit):
                    leader.limit.settle(leader.request.sent.replies)
                    await leader.limit.aclose()

    async def _answered(self, group: _Group, asked: list[_Asked]) -> None:
        """Ask these questions in one request, by the permit of the first, and hand out the answers."""
        leader = asked[0]
        attempts = self._attempts(group.model, leader.limit)
        sent: list[_Asked] = []

        async def send() -> Completion:
            sent[:] = [leader, *(each for each in asked[1:] if _has_joined(each))]
            moment_ns = time.time_ns()
            for each in sent:
                own = each.request.sent
                own.first_sent_ns = own.first_sent_ns or moment_ns
            leader.request.sent.requests += 1
            try:
                completion = await self._decisions.decide(_request(group, sent))
            except RequestFailedError as failure:
                leader.request.sent.requests -= not failure.is_sent
                leader.request.sent.reported += failure.is_sent
                raise
            leader.request.sent.reported += completion.usage != Usage()
            return completion

        usage = Usage()
        for number in range(1, _REPLY_TRIES + 1):
            try:
                completion = await attempts.send(send)
            except RequestFailedError as failure:
                if not failure.is_declined:
                    raise judge_error(
                        failure, self._decisions.service, group.model
                    ) from failure
                _hand_out(sent, [None] * len(sent), usage, None, attempts.made)
                return
            leader.request.sent.replies.append(completion.usage)
            usage += completion.usage
            try:
                answers, served = self._decisions.answers(
                    _request(group, sent), completion
                )
            except InvalidOutputError as problem:
                self.retries.note("unusable output")
                log.warning(
                    "judge output invalid model=%s try=%d of=%d problem=%s",
                    group.model,
                    number,
                    _REPLY_TRIES,
                    problem,
                    extra={"alike": "judge output invalid"},
                )
                if number == _REPLY_TRIES:
                    raise JudgeOutputError(
                        f"the reply of judge {group.model} at {self._decisions.service.shown} could not be "
                        f"read, {_REPLY_TRIES} times: {one_line(str(problem))}"
                    ) from problem
            else:
                _hand_out(sent, answers, usage, served, attempts.made)
                return


# Causes of errors that concern all questions of a request.
_OF_SERVER = (RequestFailedError, InvalidOutputError)


def split_question(request: ChatRequest) -> tuple[list[CheckedMessage], str]:
    """Return the text that questions share, and the question about it.

    Raises:
        JudgeRequestError: this is no question for a decision model.
    """
    template = request.template
    if template is None or "probability" not in template.model_fields:
        raise JudgeRequestError(
            f"{request.model} is a decision model: it answers claims with probabilities, and writes no text"
        )
    messages = checked_messages(request.messages)
    rules, asked = messages
    content = asked["content"]
    assert isinstance(content, list), "a question has parts"
    assert content[-1]["type"] == "text", "the last part is the question"
    shared: CheckedMessage = {"role": asked["role"], "content": content[:-1]}
    return [rules, shared], str(content[-1]["text"])


def shared_key(request: ChatRequest, state: Sequence[CheckedMessage]) -> str:
    """Return a hash that is the same for all questions which one request may have."""
    return judgment_key(replace(request, messages=state, template=None), 0)


def _request(group: _Group, asked: Sequence[_Asked]) -> DecisionRequest:
    rules, shared = group.state
    content = shared["content"]
    state: list[TextPart | ImagePart] = content if isinstance(content, list) else []
    extra = asked[0].request.extra
    return DecisionRequest(
        model=group.model,
        rules=str(rules["content"]),
        state=state,
        questions=[each.question for each in asked],
        extra={name: value for name, value in extra.items() if name != ASKED},
    )


def _has_joined(asked: _Asked) -> bool:
    """Tell whether a question takes part in a request; one whose answer has failed since does not."""
    if asked.answer.done():
        return False
    try:
        if isinstance(asked.limit, Permit):
            asked.limit.join()
    except JudgeError as error:
        asked.fail(error)
        return False
    return True


def _hand_out(
    asked: Sequence[_Asked],
    answers: Sequence[float | None],
    usage: Usage,
    served: str | None,
    attempts: int,
) -> None:
    """Give each question its answer, with its share of the tokens; the first one has the HTTP requests."""
    # The share of a caller that is gone goes to the others, so that the sum is what was used.
    waiting = [
        (each, probability)
        for each, probability in zip(asked, answers, strict=True)
        if not each.answer.done()
    ]
    for number, (each, probability) in enumerate(waiting):
        template = each.request.template or BaseModel
        value = template.model_validate({"probability": probability})
        each.answer.set_result(
            ChatReply(
                text=value.model_dump_json(),
                value=value,
                usage=_share(usage, number, len(waiting)),
                served_model=served,
                attempts=attempts if number == 0 else 0,
                together=len(asked),
            )
        )


def _share(usage: Usage, number: int, count: int) -> Usage:
    """Return one of ``count`` shares, which add up to the whole."""

    def own(tokens: int) -> int:
        return tokens // count + (number < tokens % count)

    return Usage(
        own(usage.input_tokens),
        own(usage.cached_tokens),
        own(usage.output_tokens),
        own(usage.cache_write_tokens),
    )
