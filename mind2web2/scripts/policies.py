"""A script without a judge, pages or a cache: a policy answers its questions in this process.

The process is a worker's (``run_in_worker``): a script may end it, or never end itself.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import os
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from mind2web2.api_tools.surroundings import services_answered_by
from mind2web2.errors import CaptureError, EvalScriptError, Mind2Web2Error
from mind2web2.judge.protocol import JudgeSession, QuestionContext
from mind2web2.judge.service_request import AskService, ServiceRequest
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord, Undecided
from mind2web2.rubric.written_tree import WrittenNode, read_tree
from mind2web2.scripts.isolation.effects import watch_effects
from mind2web2.scripts.isolation.messages import ScriptCall
from mind2web2.scripts.limits import LoopGuard, ScriptStops
from mind2web2.scripts.load import EvaluateAnswer, parsed_script, unload_eval_script
from mind2web2.scripts.made_up import Values, fill_template
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.run import load_script, script_result
from mind2web2.utils.api_misuse import AddedNode
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.hidden_keys import hide_memory, scrubbed_environment
from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given, evidence_of

_log = logging.Logger("policy", logging.CRITICAL + 1)
# A script may be loaded for so many of the time limits of one answer.
_LOAD_LIMITS = 6
# The effects of scripts in this process since the last run began.
_effects: list[str] = []


@cache
def _watch() -> None:
    watch_effects(_effects.append)


class Policy(Protocol):
    """Decides the replies to a script's questions."""

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim is supported."""

    def fill(self, form: AskedForm, template: type[BaseModel]) -> Values:
        """Return the values of an extraction by field; one that is missing is null."""

    def has_page(self, url: str) -> bool:
        """Tell whether a page is there."""


@dataclass(frozen=True)
class Surroundings:
    """The worker's command gives scripts these, as in an evaluation.

    Args:
        import_paths: where scripts find their helper modules.
    """

    import_paths: tuple[str, ...]

    @classmethod
    def of_command(cls) -> Surroundings:
        """Return the surroundings of this process, whose memory scripts cannot read then."""
        hide_memory()
        return cls(tuple(sys.path))

    def take_over(self) -> None:
        """Apply these surroundings to this worker."""
        kept = scrubbed_environment(os.environ)
        os.environ.clear()
        os.environ.update(kept)
        sys.path += [path for path in self.import_paths if path not in sys.path]


@dataclass
class PolicyRun:
    """One run of a script.

    Args:
        score: ``None`` if the script failed.
        error: why it failed.
        claims: the claims that were asked about, in order.
        forms: the extractions, likewise.
        chats: the number of the script's own requests.
        faults: mistakes that may cost the answer points, with the script's line.
        added: where the script has added its nodes.
        effects: for which an evaluation runs the script in program order.
    """

    score: float | None = None
    tree: WrittenNode = field(default_factory=WrittenNode)
    error: str | None = None
    claims: list[AskedClaim] = field(default_factory=list)
    forms: list[AskedForm] = field(default_factory=list)
    chats: int = 0
    faults: list[str] = field(default_factory=list)
    added: dict[str, AddedNode] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)

    @cached_property
    def leaves(self) -> list[WrittenNode]:
        """The leaves in rubric order."""
        return list(self.tree.leaves())

    @cached_property
    def verdicts(self) -> dict[str, bool]:
        """Tells of each leaf whether it passed, of several with one id whether all did."""
        verdicts: dict[str, bool] = {}
        for leaf in self.leaves:
            verdicts[leaf.id] = leaf.is_passed and verdicts.get(leaf.id, True)
        return verdicts

    @property
    def passed(self) -> set[str]:
        """Return the leaves that passed."""
        return {name for name, is_passed in self.verdicts.items() if is_passed}


class RunTimeoutError(EvalScriptError):
    """A script took longer on one answer than its time limit."""


class _PolicyClient(JudgeSession, AsyncCalls):
    """The client that the script receives; it is asked for whole verdicts and extractions."""

    endpoint = "policy"
    most_open_gates = 0

    def __init__(self, policy: Policy, run: PolicyRun) -> None:
        super().__init__()
        self._policy = policy
        self._run = run

    def end(self) -> None:
        """Ask nothing more, for tasks that the script left running after its evaluation."""
        self.fail(EvalScriptError("the evaluation is over"))

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own."""
        self._run.chats += 1
        if request.template is None:
            return ChatReply("")
        form = AskedForm("", None, None, use_screenshot=False, name="request")
        return ChatReply("", self._filled(form, request.template))

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:  # noqa: ARG002
        """Answer a question of a script that has pages of its own."""
        return await self.chat(request)

    def left_open(self) -> tuple[bool, Undecided]:
        """Refuse: each question has its reply at once."""
        raise NotImplementedError

    async def judged(self, claim: AskedClaim, given: Given) -> tuple[bool, Evidence]:  # noqa: ARG002
        """Return the policy's verdict."""
        self.check()
        self._run.claims.append(claim)
        return self._policy.holds(claim), evidence_of(claim.verification, "judge")

    async def filled(
        self,
        form: AskedForm,
        template: type[BaseModel],
        given: Given,  # noqa: ARG002
    ) -> tuple[BaseModel | None, ExtractionRecord]:
        """Return the policy's values, none where there is no page."""
        self.check()
        self._run.forms.append(form)
        if form.url is not None and not (form.url.strip() and self._policy.has_page(form.url)):
            unavailable = "by the policy"
            return None, ExtractionRecord(name=form.name, url=form.url, unavailable=unavailable)
        record = ExtractionRecord(name=form.name, url=form.url)
        return self._filled(form, template), record

    def _filled(self, form: AskedForm, template: type[BaseModel]) -> BaseModel:
        return fill_template(template, self._policy.fill(form, template))

    async def page_info(self, url: str, given: Given) -> tuple[list[str], str]:  # noqa: ARG002
        """Return a blank page."""
        if not self._policy.has_page(url):
            raise CaptureError("the page is not there")
        return [], ""


class _BlankCache:
    """A cache that knows the pages of a policy, with the attributes of ``AnswerCache``."""

    at_first = None
    captures = None

    def __init__(self, policy: Policy) -> None:
        self.task_cache = self
        self.looked_up: dict[str, str | None] = {}
        self._policy = policy

    def has(self, url: str) -> str | None:
        """Tell how the page is stored."""
        return "web" if self._policy.has_page(url) else None

    def has_web(self, url: str) -> bool:
        """Tell whether it is stored."""
        return self._policy.has_page(url)

    def has_pdf(self, url: str) -> bool:  # noqa: ARG002
        """Tell that it is not a PDF."""
        return False

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, None]:  # noqa: ARG002
        """Return a text that says nothing."""
        return "A page.", None

    def get_pdf(self, url: str) -> bytes:  # noqa: ARG002
        """Return one that says nothing."""
        return b""

    def get_all_urls(self) -> list[str]:
        """Return none."""
        return []

    def put_web(self, url: str, text: str, screenshot: object) -> None:
        """Store nothing."""

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:
        """Store nothing."""

    def note_captured(self, url: str) -> None:
        """Note nothing."""


@dataclass
class PolicyScript:
    """A script, with the seconds that it has for one answer."""

    path: Path
    timeout_s: float
    _loaded: EvaluateAnswer | None = None

    async def run(self, answer: str, policy: Policy) -> PolicyRun:
        """Run the script on an answer; an error of its own is part of the result.

        Raises:
            RunTimeoutError: the script did not end in time, or is not loaded in time.
        """
        run = PolicyRun()
        try:
            evaluate = self._loaded or await self._load()
            async with self._guard(self.timeout_s, "end", "on one answer") as stops:
                try:
                    await self._evaluate(evaluate, answer, policy, run, stops)
                finally:
                    self._unload(evaluate)
        except RunTimeoutError:
            raise
        except Mind2Web2Error as error:
            run.error = str(error)
        return run

    def syntax(self) -> ast.Module:
        """Return the syntax tree of the script. Raises SyntaxError: it has none."""
        return parsed_script(read_regular_file(self.path), self.path)

    async def _load(self) -> EvaluateAnswer:
        """Load the script; what it imports takes longer on a busy machine."""
        limit_s = _LOAD_LIMITS * self.timeout_s
        async with self._guard(limit_s, "load", "with what it imports"):
            return load_script(self.path)

    def _unload(self, evaluate: EvaluateAnswer) -> None:
        """Let the next run load a script afresh, so that it sees no globals of this one.

        Files have none.
        """
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
        _watch()
        _effects.clear()
        client = _PolicyClient(policy, run)
        # Scripts take any cache.
        cache: Any = _BlankCache(policy)
        call = ScriptCall(self.path, "", "policy", "policy", answer, "policy")
        with services_answered_by(_answer_service):
            result = await script_result(evaluate, call, client, cache, _log, stops, run.added)
        run.faults = client.ledger.script_faults
        run.effects = sorted(set(_effects))
        run.score = result["final_score"]
        breakdown = result.get("eval_breakdown") or [{}]
        run.tree = read_tree(breakdown[0].get("verification_tree")) or run.tree

    @asynccontextmanager
    async def _guard(self, limit_s: float, work: str, what: str) -> AsyncIterator[ScriptStops]:
        """Stop a script that takes too long."""
        started_s, stops = time.monotonic(), ScriptStops()
        try:
            async with asyncio.timeout(limit_s), LoopGuard(limit_s, stops):
                yield stops
        except (TimeoutError, EvalScriptError) as error:
            if time.monotonic() - started_s < limit_s:
                raise
            raise RunTimeoutError(
                f"script {self.path.name} did not {work} within {limit_s:g} s {what} "
                "(an endless loop, or a wait?): correct it, or rehearse it with a longer --timeout S"
            ) from error


async def _answer_service(request: ServiceRequest, _ask: AskService) -> Any:
    return {"geocode": [], "distance_matrix": {}, "by_id": None, "by_title": None}[request.name]
