"""One answer from file to result.

The module reuses an earlier result, or runs the script and records the result's provenance.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2 import __version__
from mind2web2.errors import (
    JudgeUnusableError,
    Mind2Web2Error,
    ResultWriteError,
)
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.check_record import CheckRecord
from mind2web2.judge.protocol import JudgeLedger
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.library import PageLibrary
from mind2web2.prompts.flags import flags_of
from mind2web2.results.answers import AnswerJob, AnswerSetting, read_answer
from mind2web2.results.cautions import CautionFacts
from mind2web2.results.freshness import (
    Conditions,
    folder_sha256,
    inputs_digest,
    moment_of,
    prompts_sha256,
    why_judged_again,
)
from mind2web2.results.provenance import Provenance, ScriptInputs, library_versions, served_by
from mind2web2.results.result_file import (
    JudgeUsage,
    ResultFile,
    ResultMaking,
    RunRecord,
)
from mind2web2.results.stored_results import (
    LoadedResult,
    latest_result,
    newest_result_name,
    write_file,
    write_result,
)
from mind2web2.rubric.written_tree import TREE_FORMAT
from mind2web2.scripts.isolation.messages import Ahead, ScriptCall
from mind2web2.scripts.isolation.run import Isolation, isolated_result
from mind2web2.scripts.isolation.service import RunSide
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.aio import to_the_end
from mind2web2.utils.files import file_sha256, remove_leftovers, text_sha256
from mind2web2.utils.logging_setup import cleanup_logger, create_logger
from mind2web2.utils.moments import AsOf, ClockReading, known_zone, recorded_moment
from mind2web2.utils.process_lock import ProcessLock

if TYPE_CHECKING:
    from mind2web2.pages.captures import SharedCaptures

_LOCK_NAME = ".judging.lock"
# Short for a person, long for a disk.
_POLL_S = 0.25


log = logging.getLogger(__name__)


@asynccontextmanager
async def answer_locked(folder: Path) -> AsyncIterator[bool]:
    """Try to lock an answer's folder without waiting; yield whether that succeeded.

    The lock ends with its process. Taking it removes unfinished files of killed processes.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(folder / _LOCK_NAME)
    try:
        yield await to_the_end(asyncio.to_thread(_take, lock, folder))
    finally:
        lock.give_back()


async def until_unlocked(folder: Path) -> None:
    """Wait until no other process judges the answer.

    An error of the folder ends the wait as well.
    """
    with suppress(ResultWriteError):
        while True:
            async with answer_locked(folder) as is_ours:
                if is_ours:
                    return
            await asyncio.sleep(_POLL_S)


def _take(lock: ProcessLock, folder: Path) -> bool:
    if is_ours := lock.take():
        for written in (folder, folder / "results"):
            remove_leftovers(written, min_age_s=0.0)
    return is_ours


# Judge requests at once of a whole run.
DEFAULT_JUDGE_LIMIT = 30


@dataclass(frozen=True)
class RunParts:
    """Everything that the answers of a run share.

    Args:
        reuse: take earlier results that still hold.
        answer_timeout_s: for one script on one answer; ``None`` for no limit.
        with_private_network: captures and scripts' downloads may visit private addresses.
        log_to_console: show everything that is logged, with tracebacks.
        captures: captures pages that are not cached; ``None`` captures none.
        ahead: how far scripts go on with stand-ins; ``None`` for program order.
        isolation: how scripts are run in processes of their own.
        as_of: the moment at which the clock of scripts stands still; ``None`` for the real time, in
            a replay for the moment of the newest result.
        judge_check: the judge's last check on the labelled set, for the results.
    """

    judge: CachingJudge
    library: PageLibrary
    limits: DualSemaphore
    reuse: bool
    answer_timeout_s: float | None
    with_private_network: bool = False
    log_to_console: bool = False
    captures: SharedCaptures | None = None
    ahead: Ahead | None = "values"
    isolation: Isolation = field(default_factory=Isolation)
    as_of: AsOf | None = None
    judge_check: CheckRecord | None = None

    @property
    def conditions(self) -> Conditions:
        """Return the settings that decide whether earlier results still hold."""
        return Conditions(
            judge=self.judge.record,
            as_of=self.as_of,
            with_captures=self.captures is not None,
            with_private_network=self.with_private_network,
        )

    @property
    def is_replay(self) -> bool:
        """Tell whether stored judgments are replayed."""
        return self.judge.settings.replayed_from is not None

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Evaluate one answer here, as ``evaluate_answer`` does."""
        return await evaluate_answer(job, self)


@dataclass(frozen=True)
class ScriptTime:
    """The clock of a script: where it stands still, and its time zone.

    ``None`` for the real ones.
    """

    as_of: datetime | None = None
    zone: str | None = None

    @classmethod
    def of_result(cls, made_from: Provenance | None) -> ScriptTime:
        """Return the clock that the script of a result read, the real one where it read none."""
        clock = None if made_from is None else made_from.inputs.clock
        return cls() if clock is None else cls(recorded_moment(clock), known_zone(clock.zone))


_REAL_TIME = ScriptTime()


@dataclass(frozen=True)
class AnswerOutcome:
    """The outcome of one answer: a result, or the reason why there is none.

    Args:
        reason: one line; ``None`` where there is a result.
        reused: the result is an earlier one, or the script gave the same result again.
        changed: why an earlier result no longer holds, in one line; ``None`` where there was none.
        earlier_result: without a result, the newest result file when the evaluation began; a later
            file is another process's, and counts.
        facts: what cautions need of the result, also where that is let go of; ``None`` without one.
        score: the root's score, likewise.
    """

    task_id: str
    answer_name: str
    result: ResultFile | None
    reason: str | None
    reused: bool = False
    changed: str | None = None
    earlier_result: str | None = None
    facts: CautionFacts | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        if self.result is not None:
            facts = CautionFacts.of(self.task_id, self.answer_name, self.result)
            object.__setattr__(self, "facts", facts)
            object.__setattr__(self, "score", self.result.final_score)

    @property
    def has_result(self) -> bool:
        """Tell whether there is a result, here or in its file alone."""
        return self.facts is not None

    def without_result(self) -> AnswerOutcome:
        """Return the outcome without the result, which is in its file, but with its facts."""
        return replace(self, result=None)


@dataclass(frozen=True)
class EarlierResult:
    """The newest result of an answer at the time when its evaluation begins.

    Args:
        name: of its file, readable or not; ``None`` where there is none.
        found: ``None`` where there is none that can be read.
        why_not: why it does not hold; ``None`` where it does.
    """

    name: str | None = None
    found: LoadedResult | None = None
    why_not: str | None = None

    @property
    def held(self) -> ResultFile | None:
        """Return the result if it holds."""
        return self.found.content if self.found is not None and self.why_not is None else None


async def evaluate_answer(job: AnswerJob, run: RunParts) -> AnswerOutcome | None:
    """Evaluate one answer, unless its earlier result holds.

    An error costs the result of this answer only.

    Returns:
        ``None`` while another process judges the answer; the caller tries again when that has
        ended.
    """
    earlier = EarlierResult()
    try:
        async with answer_locked(job.folder) as is_ours:
            if not is_ours:
                return None
            earlier = await asyncio.to_thread(_earlier_result, job.folder / "results")
            text = await asyncio.to_thread(read_answer, job.answer.path)
            why_not = await asyncio.to_thread(_why_not, earlier, job, text, run)
            earlier = replace(earlier, why_not=why_not)
            if earlier.held is not None:
                return AnswerOutcome(job.task_id, job.answer.name, earlier.held, None, reused=True)
            run.judge.raise_if_out()
            return await _run_and_write(job, run, text, earlier)
    except JudgeUnusableError:
        raise  # it ends the run
    except (Mind2Web2Error, OSError) as error:
        run.judge.raise_if_unusable()
        reason = _one_line(error)
    except Exception as error:
        # A bug of ours or of a library: it is reported, and the other answers go on.
        log.exception("evaluation failed task=%s answer=%s", job.task_id, job.answer.name)
        reason = f"internal error: {type(error).__name__}: {_one_line(error)}"
    # An answer that cannot be read has no log of its own.
    log.info("no result task=%s answer=%s reason=%s", job.task_id, job.answer.name, reason)
    return AnswerOutcome(job.task_id, job.answer.name, None, reason, earlier_result=earlier.name)


def _earlier_result(folder: Path) -> EarlierResult:
    return EarlierResult(newest_result_name(folder), latest_result(folder))


def _why_not(earlier: EarlierResult, job: AnswerJob, text: str, run: RunParts) -> str | None:
    """Return why an earlier result is not taken, ``None`` where it is or where there is none."""
    if earlier.found is None:
        return None
    if not run.reuse:
        return "it is replayed" if run.is_replay else "--overwrite"
    return why_judged_again(earlier.found, job, text, run.conditions)


async def _run_and_write(
    job: AnswerJob, run: RunParts, text: str, earlier: EarlierResult
) -> AnswerOutcome:
    """Run the script, and write the result unless it equals the earlier one."""
    stored = earlier.found
    async with _answer_logger(job, run) as logger:
        try:
            script_time = _script_time(job, run, stored)
            result = await run_script_on_answer(job, run, text, logger, script_time)
            if stored is not None and (run.reuse or run.is_replay) and _is_same(stored, result):
                logger.info("the same as before path=%s score=%s", stored.path, result.final_score)
                return AnswerOutcome(
                    job.task_id, job.answer.name, stored.content, None, reused=True
                )
            await asyncio.to_thread(_write, job, text, result)
            logger.info("result written score=%s", result.final_score)
        except Mind2Web2Error as error:
            logger.error("no result: %s", _one_line(error))
            raise
    changed = None if run.is_replay else earlier.why_not
    return AnswerOutcome(job.task_id, job.answer.name, result, None, changed=changed)


def _script_time(job: AnswerJob, run: RunParts, earlier: LoadedResult | None) -> ScriptTime:
    if run.as_of is not None:
        return ScriptTime(moment_of(job.answer, run.as_of))
    if earlier is None or not run.judge.is_replay:
        return _REAL_TIME
    return ScriptTime.of_result(earlier.content.provenance)


def _is_same(earlier: LoadedResult, result: ResultFile) -> bool:
    """Tell whether a result differs from the earlier one only in when and how fast it was made."""
    content = earlier.content
    return content.has_checksum and not content.is_edited and content.is_same_but_run(result)


@asynccontextmanager
async def _answer_logger(job: AnswerJob, run: RunParts) -> AsyncIterator[logging.Logger]:
    """Yield a logger and close its files, also if the task is cancelled while they are opened."""
    opened: list[logging.Logger] = []

    def open_files() -> None:
        logger, _ = create_logger(
            job.answer.stem,
            job.folder / "logs",
            run.log_to_console,
            context={"task": job.task_id, "answer": job.answer.name},
            console_level=logging.DEBUG,
        )
        opened.append(logger)

    try:
        await to_the_end(asyncio.to_thread(open_files))
        yield opened[0]
    finally:
        for logger in opened:
            cleanup_logger(logger)


async def run_script_on_answer(
    job: AnswerSetting,
    run: RunParts,
    text: str,
    logger: logging.Logger,
    script_time: ScriptTime = _REAL_TIME,
) -> ResultFile:
    """Run the task's script on an answer's text and return the complete result; nothing is written.

    Raises:
        Mind2Web2Error: there is no result; the text says why.
    """
    started = time.monotonic()
    # Before the script can write files of its own.
    script_sha256, sources_sha256 = await asyncio.to_thread(_checksums, job.script_path)
    # Before the script can store pages itself.
    at_first = await run.library.stored_at_first(job.task_cache)
    cache = AnswerCache(job.task_cache, at_first)
    call = ScriptCall(
        script_path=job.script_path,
        script_sha256=script_sha256,
        agent_name=job.agent_name,
        answer_name=job.answer.name,
        answer=text,
        model=run.judge.settings.model,
    )
    side = RunSide(
        call,
        job.task_id,
        cache,
        logger,
        run.judge,
        run.library,
        run.captures,
        run.limits,
        run.ahead,
        run.answer_timeout_s,
        script_time.as_of,
        script_time.zone,
    )
    summary, ledger, clock = await isolated_result(side, run.isolation)
    evaluated = _Evaluated(
        ResultFile.of(summary), ledger, clock, cache, script_sha256, sources_sha256, started
    )
    return await asyncio.to_thread(_completed, job, run, text, evaluated)


def _checksums(script: Path) -> tuple[str, str]:
    return file_sha256(script), folder_sha256(script.parent)


@dataclass(frozen=True)
class _Evaluated:
    """A script's result with all that is known of its making.

    Args:
        sources_sha256: of the script's folder.
        started: when the evaluation began, by the monotonic clock.
    """

    summary: ResultFile
    ledger: JudgeLedger
    clock: ClockReading | None
    cache: AnswerCache
    script_sha256: str
    sources_sha256: str
    started: float


def _completed(job: AnswerSetting, run: RunParts, text: str, evaluated: _Evaluated) -> ResultFile:
    """Return the complete result; reads files."""
    ledger, summary = evaluated.ledger, evaluated.summary
    pages = evaluated.cache.pages_used()
    making = ResultMaking(
        agent_name=job.agent_name,
        answer_name=job.answer.name,
        judge_model=run.judge.settings.model,
        task_id=job.task_id,
        time_seconds=job.answer.time_s,
        provenance=_made_from(job, run, text, evaluated, pages),
        judge_usage=JudgeUsage.of(ledger),
        doubts=tuple(sorted(ledger.doubts)),
        ignored_arguments=tuple(sorted(set(ledger.ignored_arguments))),
        script_faults=tuple(dict.fromkeys(ledger.script_faults)),
        answer_flags=tuple(flags_of(text)),
        run=RunRecord(
            version=__version__,
            tree_format=TREE_FORMAT,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - evaluated.started, 3),
            judge_requests=ledger.usage.requests,
            judge_retries=ledger.usage.requests - ledger.usage.judgments,
            judged_from=min(ledger.created, default=None),
            judged_to=max(ledger.created, default=None),
            judge_check=run.judge_check,
        ),
    )
    return summary.completed(making)


def _made_from(
    job: AnswerSetting,
    run: RunParts,
    text: str,
    evaluated: _Evaluated,
    pages: Mapping[str, str | None],
) -> Provenance:
    """Return what a result was made from."""
    ledger, clock, conditions = evaluated.ledger, evaluated.clock, run.conditions
    made_from = Provenance(
        answer_sha256=text_sha256(text),
        script=f"{job.script_version}/{job.script_path.name}",
        script_sha256=evaluated.script_sha256,
        settings_sha256=prompts_sha256(),
        judge=conditions.judge,
        pages=pages,
        listing_sha256=evaluated.cache.listing_used(),
        with_captures=conditions.with_captures,
        with_private_network=conditions.with_private_network,
        refused_pages=_refused_pages(pages, run.captures),
        refused_downloads=tuple(sorted(set(ledger.refused_downloads))),
        versions=library_versions(),
        served=served_by(ledger.served),
        inputs=ScriptInputs(
            services=tuple({answer.key: answer for answer in ledger.services}.values()),
            clock=clock if clock is not None and clock.is_read else None,
            as_of=conditions.stated_moment,
        ),
        replayed_from=run.judge.settings.replayed_from,
    )
    digest = inputs_digest(made_from, evaluated.sources_sha256, job.answer)
    return made_from.model_copy(update={"digest": digest})


def _refused_pages(
    pages: Mapping[str, str | None], captures: SharedCaptures | None
) -> tuple[str, ...]:
    if captures is None:
        return ()
    missing = [url for url, sha256 in pages.items() if sha256 is None]
    return tuple(url for url in missing if captures.is_refused_as_private(url))


def _write(job: AnswerJob, text: str, result: ResultFile) -> None:
    write_file(job.folder / job.answer.name, text)
    write_result(job.folder / "results", job.answer.name, result)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
