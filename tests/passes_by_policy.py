"""A script in passes, in processes of its own, whose questions a policy answers."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.protocol import JudgeLedger, JudgeSession
from mind2web2.llm_client.chat import ChatReply
from mind2web2.rubric.verdicts import ExtractionRecord
from mind2web2.scripts.isolation.messages import (
    Ahead,
    PassJob,
    ScriptCall,
    SentRequest,
    SentTemplate,
    checked_result,
)
from mind2web2.scripts.isolation.pass_process import answer_processes
from mind2web2.scripts.isolation.rpc import PACKAGE, Failure, Question, Reply, validate
from mind2web2.scripts.isolation.run import Isolation, done_in_time, home_of
from mind2web2.scripts.passes import ScriptPasses
from mind2web2.verification.run_questions import AskedClaim, AskedForm, evidence_of


class Policy(Protocol):
    """Says what the replies to a script's questions are."""

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim is supported."""

    def fill(self, form: AskedForm, template: SentTemplate) -> str | None:
        """Return the JSON that fills a template, ``None`` where its page is unavailable."""

    def page(self, url: str) -> str:
        """Return the text of a page that the script looks at.

        Raises CaptureError: it is unavailable.
        """

    def chat(self, request: SentRequest) -> str:
        """Return the reply to a script's own request: text, or JSON that fills its template."""

    def service(self, name: str, arguments: Sequence[Any]) -> Any:
        """Return the answer of a map or paper service."""


@dataclass(frozen=True)
class PolicyResult:
    """The result of a script by a policy.

    Args:
        summary: as the script returned it.
        questions: those that the result rests on, in the order of their use.
        for_nothing: those that were asked beside them.
        passes: how often the script was run; one more than the replies that it waits for in a row.
        ledger: the notes on the script.
    """

    summary: dict[str, Any]
    questions: tuple[Question, ...]
    for_nothing: tuple[Question, ...]
    passes: int
    ledger: JudgeLedger


class PolicyAnswers:
    """Answers a script's questions by a policy, at once."""

    def __init__(self, policy: Policy) -> None:
        self.judge = JudgeSession()
        self.asked: dict[str, Question] = {}
        self._policy = policy
        self._errors: dict[str, Mind2Web2Error] = {}

    async def reply(self, question: Question, *_: object) -> Reply:
        """Return the reply to a question."""
        self.asked[question.key] = question
        try:
            return Reply(self._value(question.name, question.arguments))
        except Mind2Web2Error as error:
            self._errors[question.key] = error
            return Reply(failure=Failure.of(error))

    def _value(self, name: str, arguments: dict[str, Any]) -> Any:
        policy = self._policy
        if name == "judged":
            claim = validate(AskedClaim, arguments["claim"])
            return policy.holds(claim), evidence_of(claim.verification, "judge")
        if name == "filled":
            form = validate(AskedForm, arguments["form"])
            text = policy.fill(form, validate(SentTemplate, arguments["template"]))
            unavailable = "by the policy" if text is None else None
            record = ExtractionRecord(name=form.name, url=form.url, unavailable=unavailable)
            return text, record
        if name == "page_info":
            return [], policy.page(str(arguments["url"]))
        if name == "chat":
            request = validate(SentRequest, arguments["request"])
            return ChatReply(policy.chat(request))
        request = arguments["request"]
        return policy.service(request["name"], request["arguments"])

    def stop(self) -> None:
        """Do nothing: no question waits."""

    def go_on(self) -> None:
        """Do nothing: no question waits."""

    def fail(self, failure: Mind2Web2Error) -> None:
        """Note that there is no result."""
        self.judge.fail(failure)

    def error_of(self, key: str) -> Mind2Web2Error | None:
        """Return why a question has no reply."""
        return self._errors.get(key)

    def ledger(self, used: Sequence[str]) -> JudgeLedger:  # noqa: ARG002
        """Return the notes on the script."""
        return self.judge.ledger

    def forget_pages(self) -> None:
        """Do nothing: there are no pages."""


class _PassesInRounds(ScriptPasses):
    """Begins a pass when all replies of the last one are there, so that passes can be counted."""

    async def _until_worthwhile(self, cost_s: float) -> None:  # noqa: ARG002
        await self._all_replies()


async def result_by_policy(
    call: ScriptCall,
    policy: Policy,
    *,
    isolation: Isolation | None = None,
    ahead: Ahead | None = None,
    timeout_s: float | None = None,
) -> PolicyResult:
    """Run a script on an answer; a policy answers its questions.

    Args:
        ahead: runs passes, whose number is that of the replies in a row; ``None`` runs the script
            once.

    Raises:
        EvalScriptError: there is no result.
    """
    isolation = isolation or Isolation()
    answers = PolicyAnswers(policy)
    logger = logging.Logger("policy", logging.CRITICAL + 1)
    with tempfile.TemporaryDirectory() as folder:
        job = PassJob(
            call=call,
            ahead=None,
            moment=datetime.now(UTC),
            shows_images=True,
            endpoint="policy",
            cache_dir=Path(folder),
            logger_name="policy",
            package_level=logging.getLogger(PACKAGE).getEffectiveLevel(),
            with_captures=False,
            stored_at_first=None,
            network=isolation.network,
            known={},
        )
        async with answer_processes(
            isolation.homes, home_of(call, isolation), job, answers, logger
        ) as starter:
            passes = _PassesInRounds(answers, starter.run, ahead)
            done = await done_in_time(passes, starter, call, isolation.limits, timeout_s)
    summary = checked_result(done.result, call.script_path)
    used = tuple(answers.asked[key] for key in done.used)
    unused = tuple(question for key, question in answers.asked.items() if key not in done.used)
    return PolicyResult(summary, used, unused, passes.count, answers.judge.ledger)
