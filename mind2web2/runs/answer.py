"""One answer from file to result: reuse or run the script, record what the result was made from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2 import __version__
from mind2web2.api_tools.download import refusals_told
from mind2web2.errors import (
    AttemptRefusedError,
    EvalScriptError,
    JudgeUnusableError,
    JudgmentMissingError,
    Mind2Web2Error,
    ResultWriteError,
)
from mind2web2.judge.caching import AnswerJudge, RecordedJudge
from mind2web2.judge.protocol import DualSemaphore, JudgeLedger, rounded_usd
from mind2web2.judge.services import AskService, ServiceRequest, services_answered_by
from mind2web2.pages.answer_view import AnswerCache, listing_sha256
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.library import PageLibrary
from mind2web2.prompts.injection_flags import flags_of
from mind2web2.runs.answers import AnswerFile, read_answer
from mind2web2.runs.provenance import (
    JudgeRecord,
    Provenance,
    library_versions,
    provenance_in,
    served_by,
    settings_sha256,
)
from mind2web2.runs.reader import TREE_FORMAT, other_pages, quote_counts
from mind2web2.runs.results import (
    LoadedResult,
    content_sha256,
    has_seal,
    is_seal_broken,
    latest_result,
    newest_result_name,
    newest_result_time_s,
    replace_result,
    sealed,
    write_file,
    write_result,
)
from mind2web2.scheduling.options import Pace, pace_kept
from mind2web2.scripts.clock import (
    AsOf,
    answer_moment,
    known_zone,
    reading_at,
    recorded_moment,
    static_reading,
)
from mind2web2.scripts.inputs import (
    InputRecorder,
    InputsNow,
    ScriptInputs,
    changed_inputs,
    inputs_recorded,
    variable_digests,
)
from mind2web2.scripts.run import ScriptCall, checked_result, script_result
from mind2web2.utils.aio import to_the_end
from mind2web2.utils.files import file_sha256, remove_leftovers, text_sha256
from mind2web2.utils.locks import ProcessLock
from mind2web2.utils.logging_setup import cleanup_logger, create_logger

if TYPE_CHECKING:
    from mind2web2.scripts.isolation.run import Isolation

_LOCK_NAME = ".judging.lock"
# Not to be late by more than a person notices, nor to keep the disk busy.
_POLL_S = 0.25


@asynccontextmanager
async def answer_locked(folder: Path) -> AsyncIterator[bool]:
    """Keep others from judging an answer, and yield whether that succeeded; without waiting.

    The lock ends with its process. Whoever has it removes what killed processes have left unfinished.

    Args:
        folder: of the answer's evaluations.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    lock = ProcessLock(folder / _LOCK_NAME)
    taking = asyncio.ensure_future(asyncio.to_thread(_take, lock, folder))
    try:
        yield await asyncio.shield(taking)
    finally:
        # Also when it was taken for somebody who was cancelled meanwhile.
        await asyncio.wait({taking})
        lock.give_back()


async def clear_left_lock(folder: Path) -> None:
    """Remove the lock of a process that was killed right after it had written its result."""
    if await asyncio.to_thread((folder / _LOCK_NAME).exists):
        with suppress(ResultWriteError):
            async with answer_locked(folder):
                pass


async def until_unlocked(folder: Path) -> None:
    """Wait until nobody judges the answer, or it cannot be told, as whoever tries to judge it will hear."""
    with suppress(ResultWriteError):
        while True:
            async with answer_locked(folder) as is_ours:
                if is_ours:
                    return
            await asyncio.sleep(_POLL_S)


def _take(lock: ProcessLock, folder: Path) -> bool:
    try:
        is_ours = lock.take()
    except OSError as error:
        raise ResultWriteError(f"cannot write to {folder}: {error.strerror or error}") from error
    if is_ours:
        for written in (folder, folder / "results"):
            remove_leftovers(written, min_age_s=0.0)
    return is_ours


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AnswerJob:
    """One answer to evaluate.

    Args:
        script_version: the version folder that the script comes from.
        task_cache: shared by the answers of the task.
        folder: where results and logs of this answer go.
    """

    agent_name: str
    task_id: str
    answer: AnswerFile
    script_path: Path
    script_version: str
    task_cache: CacheFileSys
    folder: Path


@dataclass(frozen=True)
class RunParts:
    """What all answers of a run share.

    Args:
        library: prepared pages.
        limits: how much is done at once.
        captures: for pages that are not cached; ``None`` captures nothing.
        reuse: take earlier results that still hold.
        answer_timeout_s: for one script on one answer; ``None`` for no limit.
        clock: tells the seconds that count towards ``answer_timeout_s``.
        pace: what may be asked before the program gets there.
        isolation: how scripts are run in processes of their own; ``None`` runs them in this one.
        with_private_network: private addresses are visited as well, by captures and by scripts' downloads.
        log_to_console: show everything that is logged, with tracebacks.
        as_of: the moment at which isolated scripts see the clock stand still; ``None`` for the real time, in
            a replay for that of the newest result.
        started_s: when the run began, in seconds of the epoch.
    """

    judge: RecordedJudge
    library: PageLibrary
    limits: DualSemaphore
    reuse: bool
    answer_timeout_s: float | None
    with_private_network: bool = False
    log_to_console: bool = False
    captures: SharedCaptures | None = None
    clock: Callable[[], float] = time.monotonic
    pace: Pace = field(default_factory=Pace)
    isolation: Isolation | None = None
    started_s: float = field(default_factory=time.time)
    as_of: AsOf | None = None


@dataclass(frozen=True)
class _ScriptTime:
    """The clock of a script: where it stands still, and in which time zone; ``None`` for the real ones."""

    as_of: datetime | None = None
    zone: str | None = None


@dataclass(frozen=True)
class AnswerOutcome:
    """What became of an answer: a result, or the reason why there is none.

    Args:
        result: the result file's content.
        reason: one line; ``None`` where there is a result.
        reused: the result is an earlier run's, or a replay came to the same as an earlier one.
        changed: why an earlier result no longer holds, in one line; ``None`` where none was there.
        word_count: of the answer, where it could be read.
        earlier_result: where there is none, the name of the newest result file that was there before; a
            later one is another process's, and counts.
    """

    task_id: str
    answer_name: str
    result: dict[str, Any] | None
    reason: str | None
    reused: bool = False
    changed: str | None = None
    word_count: int | None = None
    earlier_result: str | None = None

    @property
    def score(self) -> float | None:
        """Return the root's score, ``None`` without a result."""
        return None if self.result is None else float(self.result["final_score"])


async def evaluate_job(job: AnswerJob, run: RunParts) -> AnswerOutcome | None:
    """Evaluate one answer; whatever goes wrong costs this answer only.

    Returns:
        ``None`` while another process judges the answer: it is to be tried again when that has ended.
    """
    text: str | None = None
    newest: str | None = None
    try:
        newest = await asyncio.to_thread(newest_result_name, job.folder / "results")
        text = await asyncio.to_thread(read_answer, job.answer.path)
        judge = JudgeRecord.of(run.judge.settings, run.judge.endpoint)
        provenance = await asyncio.to_thread(
            current_provenance,
            job,
            judge,
            text,
            with_captures=run.captures is not None,
            with_private_network=run.with_private_network,
        )
        script_time = await asyncio.to_thread(_script_time, job, run)
        if run.as_of is not None and script_time.as_of is not None:
            inputs = ScriptInputs(as_of="answer" if run.as_of == "answer" else run.as_of.isoformat())
            provenance = provenance.model_copy(update={"inputs": inputs})
        now = inputs_now(job.answer, script_time.as_of, _variables(run))
        is_asked_again = newest is not None and not run.reuse and not _is_replay(run)
        changes = [_why_overwritten(job, run)] if is_asked_again else []
        earlier = await _reusable_result(job, run, provenance, now, changes)
        if earlier is None or _has_other_time(earlier, job):
            async with answer_locked(job.folder) as is_ours:
                if not is_ours:
                    return None
                seen, newest = newest, await asyncio.to_thread(newest_result_name, job.folder / "results")
                if run.reuse and seen != newest:
                    # Another process has judged it since.
                    changes.clear()
                    earlier = await _reusable_result(job, run, provenance, now, changes)
                if earlier is None:
                    changed = changes[0] if changes else None
                    return await _judged(job, run, text, provenance, script_time, changed)
                earlier = await asyncio.to_thread(_with_time, earlier, job)
        await clear_left_lock(job.folder)
        return _outcome(job, text, earlier.content, reused=True)
    except JudgeUnusableError:
        raise  # it ends the run
    except (Mind2Web2Error, OSError) as error:
        run.judge.raise_if_unusable()
        reason = _one_line(error)
    except Exception as error:
        # Ours or a library's mistake: it is told, and the other answers go on.
        log.exception("evaluation failed task=%s answer=%s", job.task_id, job.answer.name)
        reason = f"internal error: {type(error).__name__}: {_one_line(error)}"
    # An answer that cannot be read has no log of its own.
    log.info("no result task=%s answer=%s reason=%s", job.task_id, job.answer.name, reason)
    words = None if text is None else len(text.split())
    return AnswerOutcome(job.task_id, job.answer.name, None, reason, word_count=words, earlier_result=newest)


async def _judged(
    job: AnswerJob,
    run: RunParts,
    text: str,
    provenance: Provenance,
    script_time: _ScriptTime,
    changed: str | None,
) -> AnswerOutcome:
    result, is_same = await _evaluate(job, run, text, provenance, script_time)
    return _outcome(job, text, result, reused=is_same, changed=None if is_same else changed)


def _outcome(
    job: AnswerJob, text: str, result: dict[str, Any], reused: bool = False, changed: str | None = None
) -> AnswerOutcome:
    words = len(text.split())
    return AnswerOutcome(
        job.task_id, job.answer.name, result, None, reused=reused, changed=changed, word_count=words
    )


def _has_other_time(found: LoadedResult, job: AnswerJob) -> bool:
    return found.content.get("time_seconds") != job.answer.time_s


def _with_time(found: LoadedResult, job: AnswerJob) -> LoadedResult:
    """Return the result with the time that the agent took as it is known now, which changes no verdict."""
    if not _has_other_time(found, job):
        return found
    content = sealed({**found.content, "time_seconds": job.answer.time_s})
    replace_result(found.path, content)
    log.info("time of the agent updated path=%s time_s=%s", found.path, job.answer.time_s)
    return LoadedResult(found.path, content)


def current_provenance(
    job: AnswerJob,
    judge: JudgeRecord,
    text: str,
    *,
    with_captures: bool,
    with_private_network: bool,
) -> Provenance:
    """Return what a result of this answer would be made from now, pages aside.

    Args:
        text: the answer's.
        with_captures: whether pages that are not stored are captured.
        with_private_network: whether private addresses are visited as well.
    """
    return Provenance(
        answer_sha256=text_sha256(text),
        script=f"{job.script_version}/{job.script_path.name}",
        script_sha256=file_sha256(job.script_path),
        settings_sha256=settings_sha256(),
        judge=judge,
        pages={},
        with_captures=with_captures,
        with_private_network=with_private_network,
        versions=library_versions(),
    )


def _moment(answer: AnswerFile, as_of: AsOf | None) -> datetime | None:
    return answer_moment(answer.path, answer.created) if as_of == "answer" else as_of


def _script_time(job: AnswerJob, run: RunParts) -> _ScriptTime:
    if run.as_of is not None:
        return _ScriptTime(_moment(job.answer, run.as_of))
    if not run.judge.is_replay:
        return _ScriptTime()
    found = latest_result(job.folder / "results")
    made_from = None if found is None else provenance_in(found.content)
    clock = None if made_from is None else made_from.inputs.clock
    return _ScriptTime() if clock is None else _ScriptTime(recorded_moment(clock), known_zone(clock.zone))


def inputs_now(answer: AnswerFile, as_of: AsOf | None, variables: Mapping[str, str]) -> InputsNow:
    """Return what a script would see if it ran now.

    Raises:
        AnswerError: the answer does not tell when it was made.
    """
    moment = _moment(answer, as_of) or datetime.now(UTC)
    return InputsNow(reading_at(moment, is_read=True), variable_digests(variables))


def _variables(run: RunParts) -> Mapping[str, str]:
    return {} if run.isolation is None else run.isolation.variables


async def _reusable_result(
    job: AnswerJob, run: RunParts, provenance: Provenance, now: InputsNow, changes: list[str]
) -> LoadedResult | None:
    if not run.reuse:
        return None
    found = await asyncio.to_thread(held_result, job, provenance, now, changes)
    if found is None:
        return None
    services = Provenance.model_validate(found.content["provenance"]).inputs.services
    if changed := await run.judge.services.changed(services):
        changes.append("; ".join(changed))
        log.info("result no longer holds path=%s changed=%s", found.path, changes[-1])
        return None
    return found


def held_result(
    job: AnswerJob, provenance: Provenance, now: InputsNow, changes: list[str] | None = None
) -> LoadedResult | None:
    """Return the newest result if nothing that it was made from has changed.

    Args:
        changes: gets the reason why the newest result does not hold, in one line.
    """
    found = latest_result(job.folder / "results")
    if found is None:
        return None
    changed = changed_since(found, job, provenance, now)
    if changed is not None:
        log.info("result no longer holds path=%s changed=%s", found.path, changed)
        _note(changes, changed)
        return None
    return found


def changed_since(found: LoadedResult, job: AnswerJob, provenance: Provenance, now: InputsNow) -> str | None:
    """Return why a result of this answer does not hold, in one line; ``None`` if nothing has changed."""
    made_from = provenance_in(found.content)
    if made_from is None or not _is_result(found):
        # A result of another tool says nothing about its making, so that it cannot be told to hold.
        return "the earlier result does not say what it was made from"
    changed = made_from.differs_from(provenance)
    if is_seal_broken(found.content) or not has_seal(found.content):
        # Every result of this version has a seal, and none of another one comes so far.
        changed = "the result file was changed after it was written"
    if made_from.other_pages:
        changed = "the script stored pages itself, which cannot be compared"
    if changed is None:
        changed = _changed_page(job, made_from)
    if changed is None:
        changed = "; ".join(changed_inputs(made_from.inputs, job.script_path.parent, now)) or None
    if changed is None:
        changed = _to_be_had_now(made_from, provenance)
    if made_from.listing_sha256 not in (None, listing_sha256(job.task_cache)):
        changed = "the list of cached pages changed"
    if found.content.get("doubts"):
        changed = "the earlier result is in doubt"
    return changed


def _note(changes: list[str] | None, change: str) -> None:
    if changes is not None:
        changes.append(change)


def _changed_page(job: AnswerJob, made_from: Provenance) -> str | None:
    now = {url: job.task_cache.digest(url) for url in made_from.pages}
    changed = [url for url, was in made_from.pages.items() if now[url] != was]
    if not changed:
        return None
    url = changed[0]
    how = "no longer cached" if now[url] is None else "changed" if made_from.pages[url] else "cached since"
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"page {url}{more} {how}"


def _is_result(found: LoadedResult) -> bool:
    try:
        checked_result(found.content, found.path)
    except EvalScriptError:
        return False
    return True


def _to_be_had_now(made_from: Provenance, current: Provenance) -> str | None:
    if current.with_captures and not made_from.with_captures and None in made_from.pages.values():
        return "missing pages can be captured now"
    if current.with_private_network and made_from.refused_downloads:
        return "files on private addresses can be downloaded now"
    if current.with_private_network and current.with_captures and made_from.refused_pages:
        return "pages on private addresses can be captured now"
    return None


async def _evaluate(
    job: AnswerJob, run: RunParts, text: str, provenance: Provenance, script_time: _ScriptTime
) -> tuple[dict[str, Any], bool]:
    """Return the result, and whether it is the same as a replay has written before."""
    async with _answer_logger(job, run) as logger:
        try:
            complete = await _evaluate_logged(job, run, text, provenance, script_time, logger)
            if _is_replay(run):
                earlier = await asyncio.to_thread(latest_result, job.folder / "results")
                if earlier is not None and _is_same(earlier.content, complete):
                    logger.info("the same as before path=%s score=%s", earlier.path, complete["final_score"])
                    return earlier.content, True
            await asyncio.to_thread(_write, job, text, complete)
            logger.info("result written score=%s", complete["final_score"])
        except Mind2Web2Error as error:
            logger.error("no result: %s", _one_line(error))
            raise
        return complete, False


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


def _why_overwritten(job: AnswerJob, run: RunParts) -> str:
    """Say that everything is asked again, and whether another process has just paid for the same."""
    found = newest_result_time_s(job.folder / "results")
    others = found is not None and found >= run.started_s
    return "--overwrite, though another process has judged it in the meantime" if others else "--overwrite"


def _is_replay(run: RunParts) -> bool:
    return run.judge.settings.replayed_from is not None


def _is_same(earlier: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Tell whether two results differ in nothing but when and how fast they were made."""
    if is_seal_broken(earlier) or not has_seal(earlier):
        return False
    one, other = ({**each, "run": None} for each in (earlier, result))
    return content_sha256(one) == content_sha256(other)


async def _evaluate_logged(
    job: AnswerJob,
    run: RunParts,
    text: str,
    provenance: Provenance,
    script_time: _ScriptTime,
    logger: logging.Logger,
) -> dict[str, Any]:
    started = time.monotonic()
    # Before the script can store anything itself.
    await run.library.note_stored(job.task_cache)
    cache = AnswerCache(job.task_cache, run.library, run.limits.webpage, run.captures)
    call = ScriptCall(
        script_path=job.script_path,
        script_sha256=provenance.script_sha256,
        agent_name=job.agent_name,
        answer_name=job.answer.name,
        answer=text,
        model=run.judge.settings.model,
    )
    try:
        result, ledger, inputs = await _script_result(job, run, call, cache, script_time, logger)
    except AttemptRefusedError as refused:
        logger.info("evaluated again in program order, with the replies stored by now: %s", refused)
        cache.start_over()
        in_order = replace(run, pace=replace(run.pace, sequential=True))
        result, ledger, inputs = await _script_result(job, in_order, call, cache, script_time, logger)
    pages = await asyncio.to_thread(cache.pages_used)
    listing = await asyncio.to_thread(cache.listing_used)
    answer_flags = await asyncio.to_thread(flags_of, text)
    made_from = provenance.model_copy(
        update={
            "pages": pages,
            "refused_pages": _refused_pages(pages, run.captures),
            "refused_downloads": tuple(sorted(set(ledger.refused_downloads))),
            "other_pages": await asyncio.to_thread(other_pages, result, pages),
            "listing_sha256": listing,
            "served": served_by(ledger.served),
            "inputs": inputs.model_copy(
                update={
                    "variables": variable_digests(_variables(run)),
                    "services": tuple({answer.key: answer for answer in ledger.services}.values()),
                    "as_of": provenance.inputs.as_of,
                }
            ),
            "replayed_from": run.judge.settings.replayed_from,
        }
    )
    names = {"agent_name": job.agent_name, "answer_name": job.answer.name}
    complete = {
        # First in the file; a script that leaves them out has "unknown_answer" (eval-scripts.md).
        **names,
        "judge_model": run.judge.settings.model,
        **result,
        **names,
        "task_id": job.task_id,
        "time_seconds": job.answer.time_s,
        "provenance": made_from.model_dump(mode="json"),
        "judge_usage": _judge_usage(ledger),
        "quotes": quote_counts(result),
        "doubts": sorted(ledger.doubts),
        "ignored_arguments": sorted(set(ledger.ignored_arguments)),
        "answer_flags": [flag.model_dump(mode="json") for flag in answer_flags],
        "run": {
            "version": __version__,
            "tree_format": TREE_FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - started, 3),
            "judge_requests": ledger.usage.requests,
            "judge_retries": ledger.usage.requests - ledger.usage.judgments,
            "judged_from": ledger.first_created,
            "judged_to": ledger.last_created,
        },
    }
    return await asyncio.to_thread(sealed, complete)


def _refused_pages(pages: Mapping[str, str | None], captures: SharedCaptures | None) -> tuple[str, ...]:
    if captures is None:
        return ()
    missing = [url for url, sha256 in pages.items() if sha256 is None]
    return tuple(url for url in missing if captures.is_refused_as_private(url))


async def _script_result(
    job: AnswerJob,
    run: RunParts,
    call: ScriptCall,
    cache: AnswerCache,
    script_time: _ScriptTime,
    logger: logging.Logger,
) -> tuple[dict[str, Any], JudgeLedger, ScriptInputs]:
    """Run the script, in this process or in one of its own; return also its questions and what it read."""
    if run.isolation is not None:
        from mind2web2.scripts.isolation.run import RunSide, isolated_result

        side = RunSide(
            run.judge,
            run.limits,
            run.pace,
            run.answer_timeout_s,
            run.clock,
            script_time.as_of,
            script_time.zone,
        )
        return await isolated_result(call, job.task_id, cache, side, run.isolation, logger)
    judge = AnswerJudge(run.judge, job.task_id, job.answer.name, run.limits.llm)
    recorder = InputRecorder(job.script_path)

    async def answer_service(request: ServiceRequest, ask: AskService) -> Any:
        source = (job.task_id, job.answer.name)
        try:
            answer, record = await run.judge.services.answer(request, ask, source)
        except JudgmentMissingError as error:
            raise judge.fail(error) from error.__cause__
        judge.note_service(record)
        return answer

    with (
        inputs_recorded(recorder),
        services_answered_by(answer_service),
        pace_kept(run.pace),
        refusals_told(partial(judge.note, "refused_downloads")),
    ):
        result = await script_result(call, judge, cache, logger, run.answer_timeout_s, run.clock)
    inputs = await asyncio.to_thread(lambda: recorder.inputs(static_reading(recorder.sources())))
    return result, judge.ledger, inputs


def _judge_usage(ledger: JudgeLedger) -> dict[str, Any]:
    return {
        "judgments": ledger.usage.judgments,
        "input_tokens": ledger.usage.input_tokens,
        "cached_tokens": ledger.usage.cached_tokens,
        "output_tokens": ledger.usage.output_tokens,
        "cost_usd": rounded_usd(ledger.usage),
        # In an order of their own: votes come in whatever order the judge answers.
        "rejections": sorted((asdict(rejection) for rejection in ledger.rejections), key=str),
    }


def _write(job: AnswerJob, text: str, result: dict[str, Any]) -> None:
    write_file(job.folder / job.answer.name, text)
    write_result(job.folder / "results", job.answer.name, result)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
