"""Scores of single answers in the caller's process, such as the rewards of a training run."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, get_args

from mind2web2.errors import (
    AnswerError,
    BudgetReachedError,
    CacheReadError,
    CacheWriteError,
    CaptureError,
    EvalScriptError,
    JudgeAccessError,
    JudgeError,
    JudgeUnavailableError,
    JudgeUnusableError,
    Mind2Web2Error,
    PageMissingError,
    UsageError,
)
from mind2web2.judge.client_judge import as_provider
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.usage import RunUsage, TaskUsage
from mind2web2.llm_client.chat import Limit
from mind2web2.llm_client.connection import provider_names
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import OpenBrowser, SharedCaptures
from mind2web2.pages.page_cache import PageCache
from mind2web2.results.answers import (
    EMPTY_ANSWER,
    MAX_ANSWER_BYTES,
    AnswerFile,
    AnswerSetting,
    uniform_text,
)
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import DEFAULT_JUDGE_LIMIT, run_script_on_answer
from mind2web2.runs.file_prices import file_prices
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.session import OwnParts, Session, open_run
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.isolation.homes import fork_server
from mind2web2.urls.parts import lookup_key
from mind2web2.utils import values
from mind2web2.utils.aio import end_all
from mind2web2.utils.files import text_sha256
from mind2web2.utils.hidden_keys import hide_memory
from mind2web2.utils.loop_thread import LoopThread
from mind2web2.utils.path_config import PathConfig, ScriptFile
from mind2web2.utils.text import counted
from mind2web2.utils.values import check_number, check_text

log = logging.getLogger(__name__)
# The silent logger of all eval scripts: they log too much, and failures are in ``NoScore``.
_SCRIPTS_LOG = logging.getLogger("mind2web2.scoring.scripts")
_SCRIPTS_LOG.setLevel(logging.CRITICAL)

NoScoreKind = Literal["script", "judge", "page", "budget", "machine", "closed"]
MissingPages = Literal["no_score", "unavailable", "capture"]
_AGENT_NAME = "scorer"
# After so long, requests are sent again to a judge that was unreachable or rejected the key or the
# model.
_TRY_AGAIN_AFTER_S = 10.0
# For calls in flight to end when the scorer is closed; a script that blocks the thread never does.
_CLOSE_GRACE_S = 20.0


# As callers write it: ``Scorer(judge=Judge(model=...))``.
Judge = JudgeSpec


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer, with the reasons for it.

    Args:
        score: from 0 to 1.
        result: everything, as in a result file of ``mind2web2 evaluate``.
    """

    score: float
    result: Mapping[str, Any] = field(repr=False)

    @property
    def tree(self) -> Mapping[str, Any]:
        """Return the rubric tree; empty for an empty answer, and where the script returns none."""
        return next(iter(ResultFile.of(self.result).tree_documents()), {})

    @property
    def evidence(self) -> dict[str, Mapping[str, Any]]:
        """Return the evidence of each leaf, by the leaf's id."""
        return {
            leaf.id: leaf.evidence.model_dump(mode="json", exclude_defaults=True)
            for leaf in ResultFile.of(self.result).leaves()
            if leaf.evidence is not None
        }

    @property
    def cost_usd(self) -> float | None:
        """Return the price of the answer's judgments, reused ones included.

        ``None`` where it is unknown.
        """
        return ResultFile.of(self.result).cost_usd


@dataclass(frozen=True, slots=True)
class NoScore:
    """Why an answer has no score.

    It says nothing about the answer, and is never to be counted as 0.

    Args:
        kind: ``script`` (the eval script failed or took too long), ``judge``, ``page`` (a cited
            page is missing, or unavailable only for now), ``budget``, ``machine`` (memory, disk or
            processes of this machine, or a bug) or ``closed`` (the scorer was closed before the
            answer was judged).
        reason: one line.
    """

    kind: NoScoreKind
    reason: str


CLOSED = NoScore("closed", "the scorer was closed before the answer was judged")


@dataclass(slots=True)
class ScorerCounts:
    """How many calls a scorer has answered."""

    scores: int = 0
    no_scores: Counter[NoScoreKind] = field(default_factory=Counter)


class Scorer:
    """Scores answers, thousands at once; to be entered by ``async with`` or ``with``.

    It works in a thread of its own with an event loop of its own: ``score`` may be awaited in any
    event loop, and ``score_sync`` be called in any thread, also where a loop is running (which it
    blocks).

    Args:
        pages: the agent's cached pages, a folder with one folder for each task; ``None`` for no
            pages.
        scripts: the root of all versions of eval scripts, or a folder with the scripts themselves.
        eval_version: default: the newest dated one that has the task, then the undated ones.
        judgments: the file that keeps the judge's replies; by default they are kept in memory.
        missing_pages: the outcome for a cited page that is not in ``pages``: ``no_score``;
            ``unavailable`` (claims on it fail, as with ``evaluate --no_capture``); or ``capture``
            it now.
        max_answers: answers in work at once; further calls wait.
        max_llm_requests: judge requests at once.
        max_cost: dollars, after which no request is sent.
        answer_timeout: seconds that a script may take for one answer.
        allow_private_network: captures and scripts may also visit private addresses.

    Raises:
        UsageError: a setting is unusable.
    """

    @classmethod
    def of_settings(
        cls, settings: RunSettings, pages: Path | None, missing_pages: MissingPages
    ) -> Scorer:
        """Return a scorer by the settings of a command that scores single answers."""
        hide_memory()
        return cls(
            judge=judge_spec(settings),
            pages=pages,
            scripts=settings.paths.eval_scripts_root,
            eval_version=settings.eval_version,
            judgments=settings.judgments,
            missing_pages=missing_pages,
            max_answers=settings.max_concurrent_answers or 1,
            max_llm_requests=settings.max_llm_requests,
            max_cost=settings.max_cost,
            answer_timeout=settings.answer_timeout or 0,
            allow_private_network=settings.allow_private_network,
        )

    def __init__(
        self,
        *,
        judge: Judge,
        pages: str | Path | None = None,
        scripts: str | Path = "eval_scripts",
        eval_version: str | None = None,
        judgments: str | Path | None = None,
        missing_pages: MissingPages = "no_score",
        max_answers: int = 64,
        max_llm_requests: int = DEFAULT_JUDGE_LIMIT,
        max_cost: float | None = None,
        answer_timeout: float = 600.0,
        allow_private_network: bool = False,
    ) -> None:
        if not isinstance(judge, Judge):
            raise UsageError(f"judge is {judge!r}: give Judge(model=...)")
        check_number("max_cost", max_cost, values.positive_dollars)
        check_number("answer_timeout", answer_timeout, values.positive_seconds)
        check_number("max_answers", max_answers, values.positive_int)
        check_number("max_llm_requests", max_llm_requests, values.positive_int)
        if missing_pages not in get_args(MissingPages):
            raise UsageError(
                f"missing_pages is {missing_pages!r}: give {', '.join(get_args(MissingPages))}"
            )
        for name, folder in (("pages", pages), ("scripts", scripts)):
            if folder is not None and not Path(folder).is_dir():
                raise UsageError(f"{name}: there is no folder {folder}")
        self._judge = judge
        self._pages = None if pages is None else Path(pages)
        self._scripts = PathConfig(".").apply_overrides(
            eval_scripts_root=scripts, eval_version=eval_version
        )
        self._judgments = None if judgments is None else Path(judgments)
        self._missing_pages = missing_pages
        self._max_answers = max_answers
        self._settings = RunSettings(
            judge_model=judge.model,
            max_llm_requests=max_llm_requests,
            max_cost=max_cost,
            answer_timeout=answer_timeout,
            # A score is waited for.
            ahead="gates",
            allow_private_network=allow_private_network,
            no_capture=missing_pages == "unavailable",
            prices=file_prices(),
        )
        self.counts = ScorerCounts()
        self._usage = RunUsage()
        self._loop_thread = LoopThread("mind2web2 scorer")
        self._parts: _Parts | None = None
        # Orders calls and the end: no call begins after it.
        self._lock = threading.Lock()
        self._futures: set[Future[Score | NoScore]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._is_closing = self._is_left_behind = False

    @property
    def is_open(self) -> bool:
        """Tell whether calls are accepted."""
        return self._parts is not None

    @property
    def usage(self) -> TaskUsage:
        """Return all judgments' usage so far: requested by this scorer, and reused at no cost."""
        return sum(list(self._usage.tasks.values()), TaskUsage())

    async def score(self, task: str, answer: str, script: Path | None = None) -> Score | NoScore:
        """Return the score of an answer to a task, or why there is none.

        Args:
            script: in place of the task's own.

        Cancelling the caller stops the evaluation; replies that the judge has sent are kept.

        Raises:
            UsageError: the task has no script, or the scorer is not open.
            AnswerError: the answer is too large, or no text.
        """
        future = self._begin(task, answer, script)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._is_left_behind and caller is not None and not caller.cancelling():
                return CLOSED
            raise

    def score_sync(self, task: str, answer: str) -> Score | NoScore:
        """Do as ``score``, and block this thread until it is done."""
        future = self._begin(task, answer)
        try:
            return future.result()
        except CancelledError:
            return CLOSED
        except BaseException:
            future.cancel()  # Ctrl-C in this thread
            raise

    def check_judge(self) -> Future[None]:
        """Start to check that the judge can be reached.

        The future has a ``JudgeAccessError`` if it cannot.

        Calls check it again.
        """
        with self._lock:
            return self._loop_thread.run(self._judge_checked(self._open_parts()))

    async def _judge_checked(self, parts: _Parts) -> None:
        check = asyncio.current_task()
        assert check is not None
        self._calls.add(check)
        try:
            await parts.session.judge.check_reachable()
        except JudgeAccessError:
            parts.session.judge.try_again()
            raise
        finally:
            self._calls.discard(check)

    def _open_parts(self) -> _Parts:
        if self._parts is None:
            raise UsageError("the scorer is not open: enter it by 'async with' or 'with'")
        return self._parts

    def __enter__(self) -> Self:
        with self._lock:
            if self._loop_thread.is_started:
                raise UsageError("a scorer is entered once: make another one")
            # It loads what scripts need while the judge is opened.
            fork_server.warm_up()
            self._loop_thread.start()
        try:
            self._parts = self._loop_thread.run(self._build_parts()).result()
        except BaseException:
            self._loop_thread.stop()
            self._loop_thread.join(_CLOSE_GRACE_S)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.__enter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the scorer.

        Calls in flight return ``NoScore("closed", ...)``, and later ones are refused.
        """
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Do as ``aclose``, and block this thread until it is done."""
        with self._lock:
            parts, self._parts = self._parts, None
            if parts is None:
                return
            ending = self._loop_thread.run(self._close_parts(parts))
        # The thread stops at the end, even if the scorer no longer waits for it.
        ending.add_done_callback(lambda _: self._loop_thread.stop())
        try:
            ending.result(_CLOSE_GRACE_S)
        except TimeoutError:
            log.error("scorer's thread is left behind: %s", self._what_is_left())
            self._is_left_behind = True
            for future in list(self._futures):
                future.cancel()
        else:
            self._loop_thread.join(_CLOSE_GRACE_S)

    def _what_is_left(self) -> str:
        if not self._is_closing:
            return "the judge's client blocks it"
        calls = counted(len(self._calls), "call")
        return f"{calls} have not ended in {_CLOSE_GRACE_S:g} s"

    def _begin(self, task: str, answer: str, script: Path | None = None) -> Future[Score | NoScore]:
        with self._lock:
            future = self._loop_thread.run(
                self._score_call(self._open_parts(), task, answer, script)
            )
            self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    async def _score_call(
        self, parts: _Parts, task: str, answer: str, script: Path | None
    ) -> Score | NoScore:
        call = asyncio.current_task()
        assert call is not None
        self._calls.add(call)
        try:
            outcome = await self._score_in_turn(parts, task, answer, script)
        except asyncio.CancelledError:
            if not self._is_closing:
                raise
            outcome = CLOSED
        finally:
            self._calls.discard(call)
        if isinstance(outcome, Score):
            self.counts.scores += 1
        else:
            self.counts.no_scores[outcome.kind] += 1
        return outcome

    async def _score_in_turn(
        self, parts: _Parts, task: str, answer: str, script: Path | None
    ) -> Score | NoScore:
        text = _check_answer(answer)
        try:
            setting = await asyncio.to_thread(self._setting, parts, task, text, script)
        except CacheReadError as error:
            return NoScore("page", str(error))
        if not text.strip():
            return Score(
                0.0,
                {
                    "final_score": 0.0,
                    "task_id": task,
                    "reason": EMPTY_ANSWER,
                    "judge_usage": {"cost_usd": 0.0},
                },
            )
        async with parts.turns:
            return await self._script_score(parts, setting, text)

    def _setting(self, parts: _Parts, task: str, text: str, script: Path | None) -> AnswerSetting:
        check_text("task", task)
        found = (
            self._scripts.find_script(task)
            if script is None
            else ScriptFile(script, script.parent.name)
        )
        if found is None:
            raise UsageError(self._scripts.missing_script(task))
        # Unique to the text: records of answers must not overwrite each other.
        name = f"{text_sha256(text)[:16]}.md"
        answer = AnswerFile(name, Path(name))
        return AnswerSetting(
            _AGENT_NAME, task, answer, found.path, found.version, parts.cache(task)
        )

    async def _script_score(
        self, parts: _Parts, setting: AnswerSetting, text: str
    ) -> Score | NoScore:
        try:
            # Answers in work probe the server; further ones would wait for it in vain.
            parts.session.judge.raise_if_out()
            # Other programs may capture pages again while the scorer is open.
            parts.session.parts.library.forget(setting.task_cache)
            result = await run_script_on_answer(setting, parts.session.parts, text, _SCRIPTS_LOG)
        except (Mind2Web2Error, OSError) as error:
            if _is_judge_away(error):
                parts.try_judge_again()
            log.debug("no score task=%s", setting.task_id, exc_info=error)
            return NoScore(_kind(error), " ".join(str(error).split()))
        except Exception as error:
            log.exception("evaluation failed task=%s", setting.task_id)
            return NoScore("machine", f"internal error: {type(error).__name__}: {error}")
        if result.doubts and self._missing_pages != "unavailable":
            return NoScore("page", f"in doubt: {'; '.join(result.doubts)}")
        assert result.final_score is not None, "a script's result has a score"
        return Score(result.final_score, result.document)

    async def _build_parts(self) -> _Parts:
        async with AsyncExitStack() as exits:
            judge = self._judge
            _check_provider(judge)
            parts = OwnParts(
                provider=None if judge.client is None else as_provider(judge.client),
                judge=judge,
                captures=_stored_pages_only if self._missing_pages == "no_score" else None,
            )
            session = await exits.enter_async_context(
                open_run(self._settings, self._judgments, own=parts)
            )
            self._usage = session.judge.usage
            pages = self._pages
            if pages is None:
                pages = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="mind2web2-")))
            await exits.enter_async_context(session.at_work())
            turns = asyncio.Semaphore(self._max_answers)
            return _Parts(session, pages, turns, exits.pop_all())

    async def _close_parts(self, parts: _Parts) -> None:
        self._is_closing = True
        await end_all(self._calls)
        await parts.exits.aclose()


@dataclass(frozen=True)
class _Parts:
    """Objects that all answers share, in the scorer's thread."""

    session: Session
    pages: Path
    turns: asyncio.Semaphore
    exits: AsyncExitStack
    caches: dict[str, CacheFileSys] = field(default_factory=dict)
    trying_again: list[asyncio.TimerHandle] = field(default_factory=list)

    def cache(self, task: str) -> CacheFileSys:
        """Return a task's pages; reads the folder the first time."""
        if task not in self.caches:
            self.caches.setdefault(task, CacheFileSys(self.pages / task))
        return self.caches[task]

    def try_judge_again(self) -> None:
        """Soon send requests again to a judge that was unreachable or rejected the key or model."""

        def now() -> None:
            self.trying_again.clear()
            self.session.judge.try_again()

        if not self.trying_again:
            self.trying_again.append(asyncio.get_running_loop().call_later(_TRY_AGAIN_AFTER_S, now))


class _StoredPagesOnly(SharedCaptures):
    """Captures nothing.

    A page that is not stored costs the score, unless its capture is known to fail.
    """

    def __init__(self) -> None:
        super().__init__(_no_browser)

    async def capture_into(
        self,
        url: str,
        cache: PageCache,
        limit: Limit,  # noqa: ARG002 (as the base class has it)
        logger: logging.Logger,  # noqa: ARG002
        *,
        is_retry: bool = False,  # noqa: ARG002
    ) -> None:
        """Raise ``PageMissingError`` for a page not stored, ``CaptureError`` for one that fails."""
        # A single word, such as the "N/A" of an extraction, could be a host, but nobody cites it.
        is_single_word = "." not in url and "://" not in url
        if lookup_key(url) is None or is_single_word:
            raise CaptureError("not an address of a page")
        if await asyncio.to_thread(cache.has, url) is not None:
            return
        assert isinstance(cache, CacheFileSys)
        record = await asyncio.to_thread(cache.capture_record, url)
        if record is not None and record.failure and not record.is_transient:
            raise CaptureError(record.failure)
        raise PageMissingError(
            f"page {url} is not in {cache.task_dir}: cache it, or choose another outcome "
            "(missing_pages)"
        )


def _stored_pages_only(_: OpenBrowser) -> SharedCaptures:
    return _StoredPagesOnly()


def _no_browser() -> NoReturn:
    raise AssertionError("stored pages need no browser")


def _check_provider(judge: JudgeSpec) -> None:
    if judge.client is None and judge.provider not in provider_names():
        raise UsageError(
            f"no such provider: {judge.provider!r}: give {', '.join(provider_names())}"
        )


def _check_answer(answer: object) -> str:
    """Return an answer's text as a run would read it from a file.

    Raises:
        AnswerError: it is too large, or no text.
    """
    if not isinstance(answer, str):
        raise AnswerError(f"the answer is {type(answer).__name__}: give its text")
    try:
        size_bytes = len(answer.encode())
    except UnicodeEncodeError as error:
        raise AnswerError(
            "the answer has half of a surrogate pair, which is not a character"
        ) from error
    if size_bytes > MAX_ANSWER_BYTES:
        raise AnswerError(
            f"the answer has {size_bytes:,} bytes: it may have {MAX_ANSWER_BYTES:,} at most"
        )
    return uniform_text(answer)


def _is_judge_away(error: Exception) -> bool:
    """Tell whether the judge refuses all requests, or does not answer any."""
    if isinstance(error, JudgeUnavailableError):
        return error.is_outage
    return isinstance(error, JudgeAccessError | JudgeUnusableError)


def _kind(error: Exception) -> NoScoreKind:
    """Return which part of the harness an error comes from."""
    if isinstance(error, BudgetReachedError):
        return "budget"
    if isinstance(error, JudgeError | JudgeUnusableError):
        return "judge"
    if isinstance(error, EvalScriptError):
        return "script"
    if isinstance(error, PageMissingError | CaptureError | CacheReadError | CacheWriteError):
        return "page"
    return "machine"
