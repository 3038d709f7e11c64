"""A judge behind batch jobs.

Questions are collected, sent together and waited for, also across runs.

A question waits for its reply up to a day. When all scripts wait for replies, the questions of
their passes are one job. A question whose page takes longer to capture goes with another job at the
same time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from mind2web2.errors import JudgeError, JudgeUnavailableError
from mind2web2.judge.session import unexpected
from mind2web2.llm_client.chat import Limit
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.judge_errors import judge_error
from mind2web2.llm_client.openai_protocol import OpenAITransport, request_body
from mind2web2.llm_client.provider import AsyncProviderClient
from mind2web2.llm_client.retries import Attempts, RetryPolicy
from mind2web2.llm_client.transport import Completion, JsonBody, WireRequest
from mind2web2.plugins.batch.endpoints import (
    BatchEndpoints,
    BatchPace,
    BatchReport,
    BatchTransfer,
    JobProgress,
)
from mind2web2.plugins.batch.state import (
    BatchFolder,
    Collector,
    IsAtWork,
    IsStored,
    JobInput,
    JobRecord,
    Question,
    ResultLine,
    WaitingReplies,
)
from mind2web2.utils.shown_text import one_line

log = logging.getLogger(__name__)

# OpenAI limits the tokens that an account may have waiting.
_TOKENS_WAITING = "token_limit_exceeded"
# Refusals of a whole job, and the status of the same refusal for a direct request.
_STATUS_OF_CODE = {
    "model_not_found": 404,
    "billing_hard_limit_reached": 402,
    "insufficient_quota": 402,
}
# Most jobs that a question is sent with, if each fails temporarily.
_MAX_ROUNDS = 4


class TokensWaitingError(RequestFailedError):
    """A job was refused since too many tokens are waiting.

    A smaller or a later one may be accepted.
    """


@dataclass(eq=False)
class _Job:
    record: JobRecord
    progress: JobProgress
    error: JudgeError | None = None

    @property
    def questions(self) -> list[Question]:
        return list(self.record.questions.items())


class BatchJobs:
    """Returns the reply to each question by batch jobs, while entered.

    Args:
        endpoints: closed at the end.
        overwrite: cancel and delete the jobs of earlier runs.
        is_stored: tells whether the judgment with a key is stored, so that its reply is not needed.
        is_at_work: tells whether a script may come to ask more.
    """

    def __init__(
        self,
        endpoints: BatchEndpoints,
        folder: BatchFolder,
        model: str,
        pace: BatchPace | None = None,
        *,
        overwrite: bool = False,
        is_stored: IsStored | None = None,
        is_at_work: IsAtWork = lambda: False,
    ) -> None:
        self.progress: list[JobProgress] = []
        self.endpoints = endpoints
        self._folder = folder
        self._model = model
        self._pace = pace or BatchPace()
        self._transfer = BatchTransfer(endpoints, folder, self._pace)
        self._overwrite = overwrite
        self._is_at_work = is_at_work
        self._collector = Collector(
            folder, endpoints.url, self._pace.most_requests, self._pace.most_bytes
        )
        self._replies = WaitingReplies(folder, is_stored)
        self._one_at_a_time = False
        self._waiting: dict[Question, asyncio.Future[None]] = {}
        self._open: dict[Question, _Job] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._deletions: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: JudgeError | None = None
        self._last_number = 0
        self._waited_s = 0.0
        self._waits_since_s: float | None = None

    def client(self) -> BatchClient:
        """Return a judge behind these jobs."""
        return BatchClient(self)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._folder.lock)
        try:
            await self._resume()
        except BaseException:
            await self._end()
            raise
        self._start(self._submit_all())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                # Used replies are stored as judgments by now, or were unusable.
                await asyncio.to_thread(self._replies.forget_used)
                await asyncio.gather(*self._deletions, return_exceptions=True)
        finally:
            await self._end()

    def worked_s(self) -> float:
        """Return the seconds, from any start, during which no question waited for a job."""
        now_s = time.monotonic()
        waiting_s = 0.0 if self._waits_since_s is None else now_s - self._waits_since_s
        return now_s - self._waited_s - waiting_s

    async def result(self, custom_id: str, make_body: Callable[[], JsonBody]) -> ResultLine:
        """Return the result of a question, from an earlier job or from the next.

        Args:
            custom_id: the question's name in a job; empty for a hash.
            make_body: called each time the body is needed, so that no body waits in memory.

        Raises:
            RequestFailedError: the job has no line for it.
            JudgeError: the job's results are unknown, or it cannot be sent.
        """
        question = await self._collector.identify(custom_id, make_body)
        # Two callers with the same question need a reply each.
        while (earlier := self._waiting.get(question)) is not None:
            await asyncio.wait({earlier})
        while (line := self._replies.take(question)) is None:
            await self._wait_for(question, make_body)
        return line

    async def _wait_for(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        if self._broken is not None:
            raise self._broken
        job = self._open.get(question)
        if job is not None and job.error is not None:
            raise job.error
        future = self._waiting[question] = asyncio.get_running_loop().create_future()
        if self._waits_since_s is None:
            self._waits_since_s = time.monotonic()
        try:
            if job is None:
                await self._collector.add(question, make_body)
            await future
        finally:
            future.cancel()
            del self._waiting[question]
            if not self._waiting:
                self._waited_s += time.monotonic() - self._waits_since_s
                self._waits_since_s = None

    async def _submit_all(self) -> None:
        while True:
            for job_input in await self._collector.due(self._pace.pause_s, self._is_at_work):
                await self._submit(job_input)

    async def _submit(self, job_input: JobInput) -> None:
        try:
            while self._one_at_a_time and self._following:
                await asyncio.wait(self._following, return_when=asyncio.FIRST_COMPLETED)
            job = self._new_job(dict(job_input.questions.keys()))
            try:
                job.record = await self._transfer.submit(job.record, job_input)
            except RequestFailedError as failure:
                self._give_up(job, failure)
                if not failure.can_pass:
                    self._close(job)
                return
            job.progress.status = "submitted"
            log.info("batch %d submitted requests=%d", job.record.number, job.progress.total)
            self._follow(job)
        finally:
            await asyncio.to_thread(job_input.remove)

    def _new_job(self, questions: dict[str, str]) -> _Job:
        self._last_number += 1
        record = JobRecord(
            number=self._last_number,
            name=uuid4().hex,
            endpoint=self.endpoints.service.endpoint,
            created_s=time.time(),
            questions=questions,
        )
        return self._open_job(record, JobProgress(record.number, len(questions), record.created_s))

    def _open_job(self, record: JobRecord, progress: JobProgress) -> _Job:
        job = _Job(record, progress)
        self.progress.append(progress)
        self._open.update(dict.fromkeys(job.questions, job))
        return job

    def _close(self, job: _Job) -> None:
        for question in job.questions:
            self._open.pop(question, None)

    def _follow(self, job: _Job) -> None:
        task = self._start(self._follow_job(job))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow_job(self, job: _Job) -> None:
        try:
            report = await self._transfer.end_of(job.record, job.progress)
        except RequestFailedError as failure:
            self._give_up(job, failure)
        else:
            await self._finish(job, report)

    async def _finish(self, job: _Job, report: BatchReport) -> None:
        job.record = job.record.model_copy(update={"is_over": True})
        await asyncio.to_thread(self._folder.save, job.record)
        results = await asyncio.to_thread(self._folder.results, job.record)
        if report.status == "cancelled":
            # The other questions have an error each, and are not sent again by this run.
            results = {key: line for key, line in results.items() if line.is_reply}
        self._replies.add(job.record, results)
        self._close(job)
        deletion = self._start(self._transfer.delete_files(report))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)
        job.progress.status = report.status
        job.progress.is_over = True
        job.progress.done = replies = sum(line.is_reply for line in results.values())
        failure = None if len(results) == len(job.questions) else self._failure(job, report)
        reason = failure or self._first_error(results)
        log.log(
            logging.INFO if replies == len(job.questions) else logging.WARNING,
            "batch %d %s, replies to %d of %d requests%s",
            job.record.number,
            report.status,
            replies,
            len(job.questions),
            f": {reason}" if reason else "",
        )
        for question in job.questions:
            self._settle(question, None if question[0] in results else failure)

    def _first_error(self, results: Mapping[str, ResultLine]) -> RequestFailedError | None:
        try:
            for line in results.values():
                if not line.is_reply:
                    line.completion(self.endpoints.service.secrets)
        except RequestFailedError as failure:
            return failure
        return None

    def _failure(self, job: _Job, report: BatchReport) -> RequestFailedError | JudgeError:
        """Return the failure of a question for which the job has no line."""
        words = "; ".join(f"{code} {text}".strip() for code, text in report.problems)
        state = f"batch {job.record.number} ({report.id}) is {report.status}"
        text = one_line(f"{state}: {words}" if words else state, self.endpoints.service.secrets)
        codes = tuple(code for code, _ in report.problems)
        if report.status == "cancelled":
            return JudgeUnavailableError(f"{text} at the provider; the same command asks again")
        if _TOKENS_WAITING in codes:
            return self._too_many_tokens(job, text)
        status = next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), None)
        return RequestFailedError(text, status=status, codes=codes)

    def _too_many_tokens(self, job: _Job, text: str) -> RequestFailedError:
        is_alone = len(self._following) <= 1
        if is_alone and len(job.questions) == 1:
            return RequestFailedError(f"request too large: {text}", status=429)
        if is_alone:
            # Its halves are sent one after the other.
            self._collector.most_requests = min(
                self._collector.most_requests, len(job.questions) // 2
            )
        self._one_at_a_time = True
        return TokensWaitingError(text)

    def _give_up(self, job: _Job, failure: RequestFailedError) -> None:
        """Stop following a job in this run, which does not send its questions again either."""
        job.error = judge_error(failure, self.endpoints.service, self._model)
        job.progress.status = "given up"
        job.progress.is_over = True
        log.warning("batch %d given up for this run reason=%s", job.record.number, failure)
        for question in job.questions:
            self._settle(question, job.error)

    def _settle(self, question: Question, error: Exception | None) -> None:
        future = self._waiting.get(question)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    async def _resume(self) -> None:
        """Continue the jobs of earlier runs."""
        try:
            await self._transfer.check()
            records = await asyncio.to_thread(self._folder.records)
            self._last_number = max((record.number for record in records), default=0)
            for record in records:
                if record.endpoint == self.endpoints.service.endpoint:
                    await self._resume_job(record)
        except RequestFailedError as failure:
            raise judge_error(failure, self.endpoints.service, self._model) from failure

    async def _resume_job(self, record: JobRecord) -> None:
        if self._overwrite:
            await self._transfer.cancel(record)
            await asyncio.to_thread(self._folder.remove, record)
        elif record.is_over:
            await self._replies.recall(record)
        elif (found := await self._transfer.found(record)) is None:
            await asyncio.to_thread(self._folder.remove, record)
        else:
            count = len(record.questions)
            progress = JobProgress(record.number, count, record.created_s, True, "in progress")
            self._follow(self._open_job(found, progress))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Fail all waiting questions if a task of ours broke."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            log.error("batch jobs break off", exc_info=error)
            self._broken = self._broken or unexpected(error)
            for question in list(self._waiting):
                self._settle(question, self._broken)

    async def _end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._collector.remove)
        await self.endpoints.close()
        await asyncio.to_thread(self._folder.unlock)


class BatchTransport:
    """Sends each request with a batch job; the caller enters ``jobs``."""

    modes = OpenAITransport.modes

    def __init__(self, jobs: BatchJobs) -> None:
        self._jobs = jobs
        self.service = jobs.endpoints.service

    async def send(self, wire: WireRequest) -> Completion:
        """Return the completion of one request, from the first job that the provider accepts."""
        while True:
            try:
                line = await self._jobs.result(wire.name, partial(request_body, wire))
            except TokensWaitingError:
                continue
            return line.completion(self.service.secrets)

    async def models(self) -> list[str]:
        """Return nothing: batch jobs check the server themselves."""
        return []

    async def close(self) -> None:
        """Leave the jobs to the caller, who entered them."""


class _Rounds(Attempts):
    """Sends each request at once, and with another job after a temporary error; no rate limiter."""

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return the completion of a request."""
        for number in range(1, _MAX_ROUNDS + 1):
            try:
                async with self._limit:
                    try:
                        completion = await request()
                    except RequestFailedError:
                        self.made += 1
                        raise
                    # A cancelled caller has made no request: the run that fetches the reply counts
                    # it.
                    self.made += 1
                    return completion
            except RequestFailedError as failure:
                if not failure.can_pass or number == _MAX_ROUNDS:
                    raise
                log.info("asked again in another batch reason=%s", failure)
                self._retries.note(failure.kind)
        raise AssertionError("unreachable")


class BatchClient(AsyncProviderClient):
    """A judge behind batch jobs; the caller enters ``jobs``."""

    def __init__(self, jobs: BatchJobs) -> None:
        # A request that goes alone would take a batch job of its own.
        super().__init__(BatchTransport(jobs), RetryPolicy(), probes_images=False)

    def _attempts(self, model: str, limit: Limit | None) -> Attempts:  # noqa: ARG002 (all are sent alike)
        return _Rounds(self._retry, limit, retries=self.retries)
