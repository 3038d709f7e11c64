"""One evaluation without a model: extractions are filled, claims decided by a policy, pages are blank."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import CaptureError, EvalScriptError
from mind2web2.judge.protocol import Judge, QuestionContext
from mind2web2.judge.session import JudgeSession
from mind2web2.judge.tokens import text_tokens
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.rubric.verdicts import Outcome, Status
from mind2web2.scripts.limits import LoopGuard, ScriptStops
from mind2web2.scripts.load import EvaluateAnswer
from mind2web2.scripts.run import load_script, run_script
from mind2web2.verification.messages import BinaryEvalResult

# So long the loop has nothing else to do before a round of questions is answered.
_QUIET_TURNS = 40
# An evaluation without a model takes milliseconds; a script that takes longer waits for something.
WORLD_TIMEOUT_S = 10.0
# What a page adds to a question, as estimates of runs assume.
PAGE_TOKENS = 4000
OUTPUT_TOKENS = 400


@dataclass(frozen=True)
class Asked:
    """A claim as the judge is asked about it; ``page`` is ``None`` for the answer alone."""

    node: str | None
    claim: str
    page: str | None


@dataclass(frozen=True)
class World:
    """The replies of a rehearsal's judge.

    Args:
        holds: tells whether a claim is supported.
        fill: fills an extraction's template; by the extraction's name, and for a page with its address.
        has_page: tells whether a page is there.
    """

    answer: str
    holds: Callable[[Asked], bool]
    fill: Callable[[type[BaseModel], str], BaseModel]
    has_page: Callable[[str], bool] = lambda _url: True


@dataclass
class Requests:
    """The questions of one evaluation: claims by vote, the chain of rounds, pages and tokens."""

    claims: list[Asked] = field(default_factory=list)
    templates: dict[str, type[BaseModel]] = field(default_factory=dict)
    count: int = 0
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def pages(self) -> set[str]:
        """Return the pages that were asked about."""
        return {asked.page for asked in self.claims if asked.page is not None}


class _Rounds:
    """Answers waiting questions together once nothing else can go on.

    The number of rounds is the longest chain of questions.
    """

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def turn(self) -> None:
        """Wait for the next round."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def run(self) -> None:
        """Answer rounds until cancelled."""
        while True:
            before, quiet = len(self._waiting), 0
            while quiet < _QUIET_TURNS:
                await asyncio.sleep(0)
                quiet = quiet + 1 if len(self._waiting) == before else 0
                before = len(self._waiting)
            if self._waiting:
                self.count += 1
                waiting, self._waiting = self._waiting, []
                for future in waiting:
                    if not future.done():
                        future.set_result(None)
            else:
                await asyncio.sleep(0.001)


class _RehearsalJudge(JudgeSession, AsyncCalls):
    # No cheaper judge votes before this one.
    first = None

    def __init__(self, world: World, rounds: _Rounds | None) -> None:
        super().__init__(Usage(cost_usd=None))
        self.requests = Requests()
        self.world = world
        self.rounds = rounds

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return none: nothing is recorded."""
        return ()

    @property
    def endpoint(self) -> str:
        """Return a name: nothing is sent."""
        return "rehearsal"

    def model_for(self, requested: str) -> str:
        """Return the requested model."""
        return requested

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own."""
        return await self.ask(request, QuestionContext("script", node="script"), None)

    async def ask(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        limit: Limit | None,  # noqa: ARG002
    ) -> ChatReply:
        """Answer by the world's policy."""
        if self.rounds is not None:
            self._count_tokens(request, subject)
            await self.rounds.turn()
        self.requests.count += 1
        if subject.purpose == "verify":
            asked = Asked(subject.node, subject.claim or "", subject.page)
            if subject.trial == 1:
                self.requests.claims.append(asked)
            return ChatReply(
                text="",
                value=BinaryEvalResult(reasoning="", result=self.world.holds(asked)),
            )
        if request.template is None:
            return ChatReply(text="")
        name = subject.node or "extraction"
        template = request.template
        self.requests.templates.setdefault(name, template)
        return ChatReply(text="", value=self.world.fill(template, name))

    def recorded_skip(
        self,
        subject: QuestionContext,  # noqa: ARG002
        skip_reason: str | None,
    ) -> str | None:
        """Return the reason as it is."""
        return skip_reason

    def _count_tokens(self, request: ChatRequest, subject: QuestionContext) -> None:
        parts = [part for message in request.messages for part in _texts(message.get("content"))]
        tokens = sum(map(text_tokens, parts)) + (PAGE_TOKENS if subject.page else 0)
        self.requests.usage += Usage(input_tokens=tokens, output_tokens=OUTPUT_TOKENS, requests=1)


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (
            str(part["text"]) for part in content if isinstance(part, dict) and "text" in part
        )


class _BlankPages(PageLibrary):
    def __init__(self, has_page: Callable[[str], bool]) -> None:
        super().__init__()
        self._has_page = has_page

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return a blank page. Raises CaptureError: the page is not there."""
        if not self._has_page(request.url):
            raise CaptureError("the page does not exist (rehearsal)")
        blank = HashedText("")
        return PreparedPage(request.url, "web", None, blank, text_chars=0, text_chars_stored=0)

    async def cached(self, cache: Any, urls: Sequence[str]) -> list[bool]:  # noqa: ARG002
        """Say that all pages are at hand."""
        return [True] * len(urls)


class _BlankCache:
    """A cache with the attributes of ``RunCache``, which captures nothing."""

    page_limit = None
    captures = None

    def __init__(self, has_page: Callable[[str], bool]) -> None:
        self.task_cache = self
        self.page_library = _BlankPages(has_page)
        self._has_page = has_page

    def has(self, url: str) -> str | None:
        """Tell how the page is stored."""
        return "web" if self._has_page(url) else None

    def has_web(self, url: str) -> bool:
        """Tell whether it is stored."""
        return self._has_page(url)

    def has_pdf(self, url: str) -> bool:  # noqa: ARG002
        """Tell that it is no PDF."""
        return False

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, None]:  # noqa: ARG002
        """Return an empty text."""
        return "", None

    def get_all_urls(self) -> list[str]:
        """Return none."""
        return []


@dataclass(frozen=True)
class TreeNode:
    """A node of a rehearsed tree, in the form that scoring takes."""

    id: str
    critical: bool
    strategy: str
    verdict: Outcome
    children: tuple[TreeNode, ...]
    decided_by: str | None = None
    prerequisites: tuple[str, ...] = ()
    desc: str = ""

    def walk(self) -> Iterator[TreeNode]:
        """Yield this node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def leaves(self) -> tuple[TreeNode, ...]:
        """The leaves in rubric order."""
        if not self.children:
            return (self,)
        return tuple(leaf for child in self.children for leaf in child.leaves)


@dataclass(frozen=True)
class Rehearsed:
    """The outcome of one evaluation.

    Args:
        summary: as the script returned it.
    """

    score: float
    tree: TreeNode
    requests: Requests
    summary: Mapping[str, Any] = field(default_factory=dict)

    def asked(self) -> frozenset[tuple[str, str | None]]:
        """Return the claims with the pages on which they were asked about."""
        return frozenset((asked.claim, asked.page) for asked in self.requests.claims)

    def statuses(self) -> dict[str, Status]:
        """Return the leaves' verdicts by id."""
        return {leaf.id: leaf.verdict.status for leaf in self.tree.leaves}


_log = logging.Logger("rehearsal", logging.CRITICAL + 1)


class WorldTimeoutError(EvalScriptError):
    """A script took longer on one answer than a rehearsal waits."""


@dataclass(frozen=True)
class LoadedScript:
    """A script that is rehearsed, with the seconds that it has for one answer."""

    evaluate: EvaluateAnswer
    path: Path
    timeout_s: float = WORLD_TIMEOUT_S


async def loaded_script(path: Path, timeout_s: float) -> LoadedScript:
    """Import a script. Raises EvalScriptError: it cannot be used, or its import does not end."""
    async with _ended_within(timeout_s, path):
        return LoadedScript(load_script(path), path, timeout_s)


@asynccontextmanager
async def _ended_within(timeout_s: float, path: Path) -> AsyncIterator[ScriptStops]:
    """Stop a script that blocks the event loop, and name the option that gives it longer."""
    started_s, stops = time.monotonic(), ScriptStops()
    try:
        async with LoopGuard(timeout_s, stops):
            yield stops
    except EvalScriptError as error:
        if time.monotonic() - started_s < timeout_s:
            raise
        raise WorldTimeoutError(
            f"script {path.name} did not end within {timeout_s:g} s on one answer (an endless loop, or "
            "a wait?): correct it, or give it longer by --world_timeout S"
        ) from error


async def rehearsed(script: LoadedScript, world: World, *, count_rounds: bool = False) -> Rehearsed:
    """Evaluate an answer in a world.

    Args:
        count_rounds: also count the chain of rounds and the tokens.

    Raises:
        WorldTimeoutError: the script did not end in time.
        EvalScriptError: it failed.
    """
    async with _ended_within(script.timeout_s, script.path) as stops:
        judge = _RehearsalJudge(world, _Rounds() if count_rounds else None)
        cache = _BlankCache(world.has_page)
        return await _rehearsed(script, judge, cache, stops)


async def _rehearsed(
    script: LoadedScript,
    judge: _RehearsalJudge,
    cache: _BlankCache,
    stops: ScriptStops,
) -> Rehearsed:
    # A script takes any client: that this one is a judge is checked here.
    client: Judge = judge
    rounds = judge.rounds
    clock = asyncio.ensure_future(rounds.run()) if rounds is not None else None

    async def call() -> Any:
        return await script.evaluate(
            client=client,
            answer=judge.world.answer,
            agent_name="rehearsal",
            answer_name="rehearsal",
            cache=cache,
            semaphore=asyncio.Semaphore(64),
            logger=_log,
        )

    try:
        result = await run_script(call, script.path, script.timeout_s, _log, stops)
    finally:
        if clock is not None:
            clock.cancel()
            await asyncio.gather(clock, return_exceptions=True)
    if rounds is not None:
        judge.requests.rounds = rounds.count
    return Rehearsed(result["final_score"], _tree(result), judge.requests, result)


def _tree(result: Mapping[str, Any]) -> TreeNode:
    parts = result.get("eval_breakdown") or [{}]
    found = parts[0].get("verification_tree")
    if found is None:
        return TreeNode(
            "root", False, "parallel", Outcome(result["final_score"], "initialized"), ()
        )
    return _node(found)


def _node(found: Mapping[str, Any]) -> TreeNode:
    # A leaf behind the end of a sequence has its own verdict in "superseded".
    verdict = found.get("superseded") or found
    evidence = found.get("evidence") or {}
    return TreeNode(
        id=found["id"],
        critical=found["critical"],
        strategy=found["strategy"],
        verdict=Outcome(float(verdict["score"]), verdict["status"]),
        children=tuple(map(_node, found["children"])),
        decided_by=evidence.get("decided_by"),
        prerequisites=tuple(evidence.get("prerequisites", ())),
        desc=found["desc"],
    )
