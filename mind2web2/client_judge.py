"""A judge that asks a client directly, outside of any run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mind2web2.client_provider import as_provider, unexpected
from mind2web2.errors import ContextTooLongError, ImagesRefusedError, JudgeError, Mind2Web2Error
from mind2web2.failure_latch import Failure, FailureLatch
from mind2web2.judge import Judge, Noted, Subject, ask_twice_if_declined, ask_within_limits, note_rejection
from mind2web2.judge_ledger import JudgeLedger
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
            reply = await ask_twice_if_declined(
                self._provider.chat, request, CheckedLimit(limit, self._latch.check)
            )
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

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good."""
        return self._latch.fail(failure)

    def note(self, kind: Noted, what: str) -> None:
        """List something in the ledger."""
        getattr(self._ledger, kind).append(what)

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:  # noqa: ARG002
        """Return the reason as it is: nothing is recorded."""
        return skip_reason


def as_judge(client: Any) -> Judge:
    """Return the judge behind a client: itself where it can be asked, else wrapped."""
    # Of the class: a look at the ledger itself counts as the script's.
    if hasattr(type(client), "ask") and hasattr(type(client), "ledger"):
        judge: Judge = client
        return judge
    return ClientJudge(as_provider(client))
