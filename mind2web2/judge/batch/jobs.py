"""Questions to a judge in batch jobs: gathered, sent together, waited for, also across runs.

A question waits until its reply is there, for a day if need be. While nothing new has been asked for a
short time, everybody who could ask is presumed to wait as well, and what has been gathered becomes a job.
When that is presumed wrongly there is one job more, and nothing else is different.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from mind2web2.errors import JudgeError, JudgeUnavailableError
from mind2web2.judge.batch.endpoints import BatchEndpoints, BatchReport, line_frame, read_line
from mind2web2.judge.batch.state import BatchFolder, Gathering, JobRecord, LinePlace, Question
from mind2web2.judge.batch.transfer import BatchPace, Courier, JobProgress
from mind2web2.judge.direct import unexpected
from mind2web2.llm_client.failures import RequestFailedError, judge_error, one_line
from mind2web2.llm_client.messages import JsonBody
from mind2web2.llm_client.retry import count_requests

# Bodies come to megabytes: so many are hashed or written at once, whoever else waits has none.
_BODIES_AT_ONCE = 2


class Gatherer:
    """Gathers questions for jobs that keep to a file's limits.

    Args:
        folder: where inputs are written.
        url: what the requests of a job are sent to, as the provider calls it.
        most_requests: in one job; may be lowered.
        most_bytes: in one job's input.
    """

    def __init__(self, folder: BatchFolder, url: str, most_requests: int, most_bytes: int) -> None:
        self.most_requests = most_requests
        self._most_bytes = most_bytes
        self._folder = folder
        self._url = url
        self._gathering = folder.gathering()
        self._full: list[Gathering] = []
        self._counts = self._bytes = 0
        self._arrivals = self._coming = 0
        self._bodies = asyncio.Semaphore(_BODIES_AT_ONCE)
        self._changed = asyncio.Event()

    async def named(self, custom_id: str, make_body: Callable[[], JsonBody]) -> Question:
        """Return by what a question is known."""
        self._coming += 1
        try:
            async with self._bodies:
                body_sha256 = await asyncio.to_thread(lambda: make_body().sha256())
        finally:
            self._coming -= 1
            self._changed.set()
        return custom_id or body_sha256, body_sha256

    async def add(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        """Write a question into the input of the next job; its body is not kept."""
        self._arrivals += 1
        self._coming += 1
        try:
            async with self._bodies:
                await self._write(question, make_body())
        finally:
            self._coming -= 1
            self._changed.set()

    async def _write(self, question: Question, body: JsonBody) -> None:
        opening, closing = line_frame(question[0], self._url)
        size_bytes = len(opening) + body.size_bytes + len(closing)
        if self._counts and (
            self._counts + 1 > self.most_requests or self._bytes + size_bytes > self._most_bytes
        ):
            self._turn_over()
        self._counts += 1
        self._bytes += size_bytes
        line = chain((opening,), body.pieces(), (closing,))
        await asyncio.to_thread(self._gathering.write, question, line)

    def _turn_over(self) -> None:
        self._full.append(self._gathering)
        self._gathering = self._folder.gathering()
        self._counts = self._bytes = 0

    async def due(self, quiet_s: Callable[[], float]) -> list[Gathering]:
        """Return the inputs that are to go out: full ones at once, what there is when nothing new comes.

        Args:
            quiet_s: tells for how long nothing new must have come.
        """
        while not self._full:
            await self._changed.wait()
            self._changed.clear()
            if self._counts and await self._is_quiet(quiet_s):
                self._turn_over()
        due, self._full = self._full, []
        return due

    async def _is_quiet(self, quiet_s: Callable[[], float]) -> bool:
        """Wait until nobody seems to be about to ask; ``False`` if there is enough for a job before."""
        loop = asyncio.get_running_loop()
        while not self._full:
            pause_s = quiet_s()
            before, started_s = self._arrivals, loop.time()
            await asyncio.sleep(pause_s)
            # A loop that comes late has been busy: who wanted to ask could not.
            is_idle = loop.time() - started_s < 1.5 * pause_s
            if is_idle and self._arrivals == before and not self._coming:
                return True
        return False

    async def all_written(self) -> None:
        """Wait until every line that was begun is in its file: a full one does not wait for quiet."""
        while self._coming:
            self._changed.clear()
            await self._changed.wait()
        self._changed.set()

    def remove(self) -> None:
        """Delete what has not gone out."""
        for gathering in (*self._full, self._gathering):
            gathering.remove()


# Tells whether the judgment with a key is stored.
IsStored = Callable[[str], Awaitable[bool]]


class WaitingReplies:
    """Where the reply to each question is, until it is taken.

    Args:
        folder: of the jobs.
        is_stored: a reply to what it knows is not needed any more.
    """

    def __init__(self, folder: BatchFolder, is_stored: IsStored | None) -> None:
        self._folder = folder
        self._is_stored = is_stored
        self._places: dict[Question, list[LinePlace]] = {}
        self._over: list[JobRecord] = []

    def take(self, question: Question) -> LinePlace | None:
        """Return where a reply to a question is, for one who asks."""
        places = self._places.get(question)
        return places.pop(0) if places else None

    def put_back(self, question: Question, place: LinePlace) -> None:
        """Keep a reply that was taken and of which nothing was made."""
        self._places.setdefault(question, []).insert(0, place)

    def add(self, record: JobRecord, places: Mapping[str, LinePlace]) -> None:
        """Keep what a job has brought."""
        for question in record.questions.items():
            if question[0] in places:
                self._places.setdefault(question, []).append(places[question[0]])
        self._over.append(record)

    async def recall(self, record: JobRecord) -> None:
        """Keep what a job of an earlier run has brought that may be of use."""
        found = await asyncio.to_thread(self._folder.places, record)
        # What has met an error cost nothing, and may pass today.
        places = {key: place for key, place in found.items() if place.is_reply}
        if self._is_stored is not None:
            # A run that was stopped has forgotten nothing, although it had stored some.
            places = {key: place for key, place in places.items() if not await self._is_stored(key)}
        self.add(record, places)
        await asyncio.to_thread(self._keep_only_untaken, record)

    def forget_used(self) -> None:
        """Remove from disk what was taken."""
        for record in self._over:
            self._keep_only_untaken(record)

    def _keep_only_untaken(self, record: JobRecord) -> None:
        left = {question for question in record.questions.items() if self._places.get(question)}
        if left != set(record.questions.items()):
            self._folder.keep_only(record, left)


log = logging.getLogger(__name__)

# OpenAI bounds the tokens that an account may have waiting.
_TOKENS_WAITING = "token_limit_exceeded"
# What a job as a whole may be refused for, and the status that one such request would have met.
_STATUS_OF_CODE = {"model_not_found": 404, "billing_hard_limit_reached": 402, "insufficient_quota": 402}


class TokensWaitingError(RequestFailedError):
    """A job was refused since too many tokens are waiting; a smaller or a later one may pass."""


@dataclass(eq=False)
class _Job:
    record: JobRecord
    progress: JobProgress
    error: JudgeError | None = None

    @property
    def questions(self) -> list[Question]:
        return list(self.record.questions.items())


class BatchJobs:
    """Brings the reply to each question by batch jobs, while entered.

    Args:
        endpoints: the provider's; closed at the end.
        folder: where jobs are remembered, so that a later run goes on with them.
        model: whom the questions go to, for messages.
        overwrite: cancel and forget the jobs of earlier runs.
        is_stored: tells whether the judgment with a key is stored, so that no reply to it is needed.
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
    ) -> None:
        self.progress: list[JobProgress] = []
        self.endpoints = endpoints
        self._folder = folder
        self._model = model
        self._pace = pace or BatchPace()
        self._courier = Courier(endpoints, folder, self._pace)
        self._overwrite = overwrite
        self._gatherer = Gatherer(folder, endpoints.url, self._pace.most_requests, self._pace.most_bytes)
        self._replies = WaitingReplies(folder, is_stored)
        self._one_at_a_time = False
        self._waiting: dict[Question, asyncio.Future[None]] = {}
        self._under_way: dict[Question, _Job] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._tidying: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: JudgeError | None = None
        self._last_number = 0
        self._waited_s = 0.0
        self._waits_since_s: float | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._folder.lock)
        try:
            await self._resume()
        except BaseException:
            await self._end()
            raise
        self._start(self._submit_what_comes())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                # Whatever was used is in the store of judgments by now, or failed and is to be asked anew.
                await asyncio.to_thread(self._replies.forget_used)
                await asyncio.gather(*self._tidying, return_exceptions=True)
        finally:
            await self._end()

    def worked_s(self) -> float:
        """Return seconds that have passed while no question waited for a job."""
        now_s = time.monotonic()
        waiting_s = 0.0 if self._waits_since_s is None else now_s - self._waits_since_s
        return now_s - self._waited_s - waiting_s

    async def line(self, custom_id: str, make_body: Callable[[], JsonBody]) -> bytes:
        """Return the line of results on a question, from an earlier job or from the next.

        Args:
            custom_id: the question's name in a job; empty takes a hash.
            make_body: called whenever the body is needed, which is not kept while the reply is waited for.

        Raises:
            RequestFailedError: the job brought none.
            JudgeError: it is not known what the job brings, or it cannot be sent.
        """
        question = await self._gatherer.named(custom_id, make_body)
        # Two who ask the same at a time want a reply each.
        while (earlier := self._waiting.get(question)) is not None:
            await asyncio.wait({earlier})
        place = self._replies.take(question)
        while place is None:
            await self._wait_for(question, make_body)
            place = self._replies.take(question)
        try:
            return await asyncio.to_thread(place.read)
        except asyncio.CancelledError:
            if place.is_reply:
                self._replies.put_back(question, place)
            else:
                # No later run has a look at it.
                count_requests(requests=1, reported=1)
            raise

    async def _wait_for(self, question: Question, make_body: Callable[[], JsonBody]) -> None:
        if self._broken is not None:
            raise self._broken
        job = self._under_way.get(question)
        if job is not None and job.error is not None:
            raise job.error
        future = self._waiting[question] = asyncio.get_running_loop().create_future()
        if self._waits_since_s is None:
            self._waits_since_s = time.monotonic()
        try:
            if job is None:
                await self._gatherer.add(question, make_body)
            await future
        finally:
            future.cancel()
            del self._waiting[question]
            if not self._waiting:
                self._waited_s += time.monotonic() - self._waits_since_s
                self._waits_since_s = None

    async def _submit_what_comes(self) -> None:
        while True:
            for gathering in await self._gatherer.due(self._quiet_s):
                await self._submit(gathering)

    def _quiet_s(self) -> float:
        return self._pace.quiet_s * (1 + len(self._following))

    async def _submit(self, gathering: Gathering) -> None:
        try:
            await self._gatherer.all_written()
            while self._one_at_a_time and self._following:
                await asyncio.wait(self._following, return_when=asyncio.FIRST_COMPLETED)
            unwanted = {question for question in gathering.questions if not self._is_waited_for(question)}
            await asyncio.to_thread(gathering.finish, unwanted)
            if gathering.questions:
                await self._send(self._new_job(gathering.questions), gathering)
        finally:
            await asyncio.to_thread(gathering.remove)

    def _is_waited_for(self, question: Question) -> bool:
        future = self._waiting.get(question)
        return future is not None and not future.done() and question not in self._under_way

    def _new_job(self, questions: list[Question]) -> _Job:
        self._last_number += 1
        record = JobRecord(
            number=self._last_number,
            name=uuid4().hex,
            endpoint=self.endpoints.service.endpoint,
            created_s=time.time(),
            questions=dict(questions),
        )
        return self._known(record, JobProgress(record.number, len(questions), record.created_s))

    def _known(self, record: JobRecord, progress: JobProgress) -> _Job:
        job = _Job(record, progress)
        self.progress.append(progress)
        self._under_way.update(dict.fromkeys(job.questions, job))
        return job

    async def _send(self, job: _Job, gathering: Gathering) -> None:
        try:
            job.record = await self._courier.hand_in(job.record, gathering)
        except RequestFailedError as failure:
            self._lose(job, failure)
            if not failure.can_pass:
                self._withdraw(job)
            return
        job.progress.status = "submitted"
        log.info("batch %d submitted requests=%d", job.record.number, job.progress.total)
        self._follow(job)

    def _follow(self, job: _Job) -> None:
        task = self._start(self._brought_home(job))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _brought_home(self, job: _Job) -> None:
        try:
            report = await self._courier.end_of(job.record, job.progress)
        except RequestFailedError as failure:
            self._lose(job, failure)
        else:
            await self._finished(job, report)

    async def _finished(self, job: _Job, report: BatchReport) -> None:
        job.record = job.record.model_copy(update={"is_over": True})
        await asyncio.to_thread(self._folder.save, job.record)
        places = await asyncio.to_thread(self._folder.places, job.record)
        if report.status == "cancelled":
            # What was not answered has an error each, and is not to go out again.
            places = {name: place for name, place in places.items() if place.is_reply}
        self._replies.add(job.record, places)
        self._withdraw(job)
        tidying = self._start(self._courier.delete_files(report))
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)
        job.progress.status, job.progress.is_over = report.status, True
        job.progress.done = replies = sum(place.is_reply for place in places.values())
        failure = None if len(places) == len(job.questions) else self._failure(job, report)
        reason = failure or await asyncio.to_thread(self._first_error, places)
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
            self._settle(question, None if question[0] in places else failure)

    def _first_error(self, places: Mapping[str, LinePlace]) -> RequestFailedError | None:
        """Return what one of the questions has met that have an error for a reply."""
        place = next((place for place in places.values() if not place.is_reply), None)
        if place is None:
            return None
        try:
            read_line(place.read(), self.endpoints.service.secrets)
        except RequestFailedError as failure:
            return failure
        return None

    def _failure(self, job: _Job, report: BatchReport) -> RequestFailedError | JudgeError:
        """Return what a question has met that the job has no line for."""
        words = "; ".join(f"{code} {text}".strip() for code, text in report.problems)
        what = f"batch {job.record.number} ({report.id}) is {report.status}"
        text = one_line(f"{what}: {words}" if words else what, self.endpoints.service.secrets)
        codes = tuple(code for code, _ in report.problems)
        if report.status == "cancelled":
            return JudgeUnavailableError(f"{text} at the provider; the same command asks again")
        if _TOKENS_WAITING in codes:
            return self._too_many_tokens(job, text)
        status = next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), None)
        return RequestFailedError(text, status=status, codes=codes)

    def _too_many_tokens(self, job: _Job, text: str) -> RequestFailedError:
        others = len(self._following) - 1
        if others <= 0 and len(job.questions) == 1:
            return RequestFailedError(f"request too large: {text}", status=429)
        if others <= 0:
            # Halves of it go out, one after the other.
            self._gatherer.most_requests = min(self._gatherer.most_requests, len(job.questions) // 2)
        self._one_at_a_time = True
        return TokensWaitingError(text)

    def _lose(self, job: _Job, failure: RequestFailedError) -> None:
        """Give up following a job in this run; what it has asked is not sent again beside it."""
        job.error = judge_error(failure, self.endpoints.service, self._model)
        job.progress.status, job.progress.is_over = "given up", True
        log.warning("batch %d given up for this run reason=%s", job.record.number, failure)
        for question in job.questions:
            self._settle(question, job.error)

    def _withdraw(self, job: _Job) -> None:
        for question in job.questions:
            self._under_way.pop(question, None)

    def _settle(self, question: Question, error: Exception | None) -> None:
        future = self._waiting.get(question)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    async def _resume(self) -> None:
        """Go on with the jobs of earlier runs."""
        try:
            await self._courier.check()
            records = await asyncio.to_thread(self._folder.records)
            self._last_number = max((record.number for record in records), default=0)
            own = [record for record in records if record.endpoint == self.endpoints.service.endpoint]
            for record in own:
                await (self._abandon(record) if self._overwrite else self._recall(record))
        except RequestFailedError as failure:
            raise judge_error(failure, self.endpoints.service, self._model) from failure

    async def _recall(self, record: JobRecord) -> None:
        if record.is_over:
            await self._replies.recall(record)
            return
        named = await self._courier.found(record)
        if named is None:
            await asyncio.to_thread(self._folder.remove, record)
            return
        progress = JobProgress(record.number, len(record.questions), record.created_s, True, "under way")
        self._follow(self._known(named, progress))

    async def _abandon(self, record: JobRecord) -> None:
        await self._courier.cancel(record)
        await asyncio.to_thread(self._folder.remove, record)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Let nobody wait for work that broke down."""
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
        await asyncio.to_thread(self._gatherer.remove)
        await self.endpoints.close()
        await asyncio.to_thread(self._folder.unlock)
