"""One run of a script without a judge, pages or a cache: a policy answers its questions in this process."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from mind2web2.api_tools.surroundings import services_answered_by
from mind2web2.errors import CaptureError, EvalScriptError
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.services import AskService, ServiceRequest
from mind2web2.judge.session import JudgeSession
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.node import Undecided
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord
from mind2web2.rubric.written_tree import WrittenNode, read_tree
from mind2web2.scripts.limits import LoopGuard, ScriptStops
from mind2web2.scripts.load import EvaluateAnswer, unload_eval_script
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.run import load_script, run_script
from mind2web2.verification.claims import evidence_of
from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given, RunQuestions

# A run without a judge takes milliseconds; a script that takes longer waits for something.
RUN_TIMEOUT_S = 10.0
_log = logging.Logger("rehearsal", logging.CRITICAL + 1)


class Policy(Protocol):
    """Says what the replies to a script's questions are."""

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim is supported."""

    def fill(self, form: AskedForm, template: type[BaseModel]) -> BaseModel | None:
        """Return a filled template, ``None`` where its page is unavailable."""

    def has_page(self, url: str) -> bool:
        """Tell whether a page is there."""


@dataclass
class PolicyRun:
    """One run of a script.

    Args:
        score: ``None`` if the script failed.
        error: why it failed.
        claims: the claims that were asked about, in order.
        forms: the extractions, with their templates.
        chats: the number of the script's own requests.
    """

    score: float | None = None
    tree: WrittenNode = field(default_factory=WrittenNode)
    error: str | None = None
    claims: list[AskedClaim] = field(default_factory=list)
    forms: list[tuple[AskedForm, type[BaseModel]]] = field(default_factory=list)
    chats: int = 0

    @property
    def leaves(self) -> list[WrittenNode]:
        """Return the leaves in rubric order."""
        return list(self.tree.leaves())


class RunTimeoutError(EvalScriptError):
    """A script took longer on one answer than a rehearsal waits."""


class _PolicyClient(JudgeSession, AsyncCalls):
    """The client that the script receives; it is asked for whole verdicts and extractions."""

    endpoint = "policy"
    most_open_gates = 0

    def __init__(self, policy: Policy, run: PolicyRun) -> None:
        super().__init__(Usage())
        self._policy = policy
        self._run = run

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return none: nothing is recorded."""
        return ()

    def recorded_skip(
        self,
        subject: QuestionContext,  # noqa: ARG002
        skip_reason: str | None,
    ) -> str | None:
        """Return the reason as it is."""
        return skip_reason

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own."""
        self._run.chats += 1
        if request.template is None:
            return ChatReply("")
        form = AskedForm("", None, None, use_screenshot=False, name="request")
        return ChatReply("", self._policy.fill(form, request.template))

    async def ask(
        self,
        request: ChatRequest,
        subject: QuestionContext,  # noqa: ARG002
        limit: Limit | None,
    ) -> ChatReply:
        """Answer a question of a script that has pages of its own."""
        return await self.chat(request, limit)

    def left_open(self) -> tuple[bool, Undecided]:
        """Refuse: each question has its reply at once."""
        raise NotImplementedError

    async def judged(self, claim: AskedClaim, given: Given) -> tuple[bool, Evidence]:  # noqa: ARG002
        """Return the policy's verdict."""
        self._run.claims.append(claim)
        return self._policy.holds(claim), evidence_of(claim.verification, "judge")

    async def filled(
        self,
        form: AskedForm,
        template: type[BaseModel],
        given: Given,  # noqa: ARG002
    ) -> tuple[BaseModel | None, ExtractionRecord]:
        """Return the policy's values."""
        self._run.forms.append((form, template))
        is_there = form.url is None or (form.url.strip() and self._policy.has_page(form.url))
        value = self._policy.fill(form, template) if is_there else None
        unavailable = "by the policy" if value is None else None
        return value, ExtractionRecord(name=form.name, url=form.url, unavailable=unavailable)

    async def page_info(self, url: str, given: Given) -> tuple[list[str], str]:  # noqa: ARG002
        """Return a blank page."""
        if not self._policy.has_page(url):
            raise CaptureError("the page is not there")
        return [], ""


class _BlankCache:
    """A cache that knows the pages of a policy, with the attributes of ``RunCache``."""

    page_limit = None
    captures = None

    def __init__(self, policy: Policy) -> None:
        self.task_cache = self
        self.page_library = PageLibrary()
        self._policy = policy

    def has(self, url: str) -> str | None:
        """Tell how the page is stored."""
        return "web" if self._policy.has_page(url) else None

    def has_web(self, url: str) -> bool:
        """Tell whether it is stored."""
        return self._policy.has_page(url)

    def has_pdf(self, url: str) -> bool:  # noqa: ARG002
        """Tell that it is no PDF."""
        return False

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, None]:  # noqa: ARG002
        """Return an empty text."""
        return "", None

    def get_all_urls(self) -> list[str]:
        """Return none."""
        return []


@dataclass
class RehearsedScript:
    """A script, with the seconds that it has for one answer."""

    path: Path
    timeout_s: float = RUN_TIMEOUT_S
    _loaded: EvaluateAnswer | None = None

    async def run(self, answer: str, policy: Policy) -> PolicyRun:
        """Run the script on an answer.

        Raises:
            RunTimeoutError: the script did not end in time.
        """
        run = PolicyRun()
        try:
            async with self._guard() as stops:
                evaluate = self._loaded or load_script(self.path)
                try:
                    await self._evaluate(evaluate, answer, policy, run, stops)
                finally:
                    self._unload(evaluate)
        except RunTimeoutError:
            raise
        except EvalScriptError as error:
            run.error = str(error)
        return run

    def _unload(self, evaluate: EvaluateAnswer) -> None:
        """Let the next run load a script afresh, so that it sees no globals of this one; files have none."""
        if self.path.suffix == RUBRIC_SUFFIX:
            self._loaded = evaluate
        else:
            unload_eval_script(evaluate)

    async def _evaluate(
        self,
        evaluate: EvaluateAnswer,
        answer: str,
        policy: Policy,
        run: PolicyRun,
        stops: ScriptStops,
    ) -> None:
        random.seed(answer)
        # Scripts take any client: the toolkit finds out by its methods that this one is asked for verdicts.
        client: RunQuestions = _PolicyClient(policy, run)

        async def call() -> Any:
            return await evaluate(
                client=client,
                answer=answer,
                agent_name="rehearsal",
                answer_name="rehearsal",
                cache=_BlankCache(policy),
                semaphore=asyncio.Semaphore(64),
                logger=_log,
            )

        with services_answered_by(_made_up_service):
            result = await run_script(call, self.path, self.timeout_s, _log, stops)
        run.score = result["final_score"]
        breakdown = result.get("eval_breakdown") or [{}]
        run.tree = read_tree(breakdown[0].get("verification_tree")) or run.tree

    @asynccontextmanager
    async def _guard(self) -> AsyncIterator[ScriptStops]:
        """Stop a script that blocks the event loop, and name the option that gives it longer."""
        started_s, stops = time.monotonic(), ScriptStops()
        try:
            async with LoopGuard(self.timeout_s, stops):
                yield stops
        except EvalScriptError as error:
            if time.monotonic() - started_s < self.timeout_s:
                raise
            raise RunTimeoutError(
                f"script {self.path.name} did not end within {self.timeout_s:g} s on one answer "
                "(an endless loop, or a wait?): correct it, or give it longer by --timeout S"
            ) from error


async def _made_up_service(request: ServiceRequest, _ask: AskService) -> Any:
    return {"geocode": [], "distance_matrix": {}, "by_id": None, "by_title": None}[request.name]
