"""A judge that asks a client directly, outside of any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from mind2web2.client_provider import as_provider, unexpected
from mind2web2.errors import ContextTooLongError, ImagesRefusedError, JudgeError, Mind2Web2Error
from mind2web2.failure_latch import Failure, FailureLatch
from mind2web2.judge import Judge, Noted, Subject, ask_twice_if_declined, ask_within_limits, note_rejection
from mind2web2.judge_ledger import JudgeLedger
from mind2web2.judgment import judgment_key
from mind2web2.kept_replies import current_replies
from mind2web2.limits import CheckedLimit
from mind2web2.llm_client.calls import AsyncCalls
from mind2web2.llm_client.chat import NO_LIMIT, ChatProvider, ChatReply, ChatRequest, ImageLimit, Limit
from mind2web2.program_order import check_look


class ClientJudge(AsyncCalls):
    """Asks a client directly, outside of any run; nothing is stored."""

    def __init__(self, provider: ChatProvider) -> None:
        self._provider = provider
        self._latch = FailureLatch()
        self._ledger = JudgeLedger(cost_usd=None)
        self.image_limit = NO_LIMIT

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return none: nothing is recorded."""
        return ()

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far."""
        check_look("what the judge has been asked")
        return self._ledger

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good."""
        check_look("whether the judge has failed")
        return self._latch.failure

    @property
    def endpoint(self) -> str:
        """Return what tells this client's server from others."""
        return self._provider.endpoint

    def model_for(self, requested: str) -> str:
        """Return the requested model: such a client takes any."""
        return requested

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:
        """Answer a request of the script's own."""
        return await ask_within_limits(self, request, Subject("script"), limit)

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self._latch.check()
        try:
            reply = await self._reply(request, subject.trial, CheckedLimit(limit, self._latch.check))
        except ContextTooLongError:
            raise
        except ImagesRefusedError as refusal:
            self.image_limit = self.image_limit.merged(ImageLimit.of(refusal))
            raise
        except JudgeError as error:
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        ledger = self._ledger
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
        return self._latch.fail(failure)

    def note(self, kind: Noted, what: str) -> None:
        """List something in the ledger."""
        getattr(self._ledger, kind).append(what)

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


def as_judge(client: Any) -> Judge:
    """Return the judge behind a client: itself where it can be asked, else wrapped."""
    if hasattr(client, "ask") and hasattr(client, "ledger"):
        judge: Judge = client
        return judge
    return ClientJudge(as_provider(client))
