"""The processes of a script: one loads it, and each pass runs in a fork; questions go to the run.

The run has the keys, the pages, the judgment store and the rate limiter.
"""

from __future__ import annotations

import asyncio
import codecs
import gc
import logging
import os
import random
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mind2web2.api_tools.surroundings import (
    downloads_from,
    report_downloads,
    services_answered_by,
)
from mind2web2.errors import EvalScriptError, MachineError, Mind2Web2Error
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache import CacheFileSys
from mind2web2.prompts.flags import address_flags
from mind2web2.scripts.clock import PassLoop, ScriptClock
from mind2web2.scripts.isolation.answer_client import AnswerClient
from mind2web2.scripts.isolation.effects import SHARED_MEMORY, watch_effects
from mind2web2.scripts.isolation.messages import REPLIES, HomeJob, PassJob
from mind2web2.scripts.isolation.questions import WRITES, PassQuestions
from mind2web2.scripts.isolation.rpc import (
    PACKAGE,
    Done,
    Failure,
    Message,
    Reply,
    RpcClient,
    allow_deep_trees,
    prepare,
    validate,
)
from mind2web2.scripts.limits import LoopGuard, ScriptStops
from mind2web2.scripts.loops import StandIns
from mind2web2.scripts.run import load_script, log_unseen_errors, script_result
from mind2web2.utils.api_misuse import ScriptReports, script_reports
from mind2web2.utils.files import file_sha256
from mind2web2.utils.fork_loop import ForkLoop
from mind2web2.utils.log_records import SentRecord

if TYPE_CHECKING:
    from mind2web2.judge.service_request import AskService, ServiceRequest
    from mind2web2.scripts.load import EvaluateAnswer

# The time for a script's process to end those of its passes.
HOME_GRACE_S = 2.0
# Processor time; a script that takes more in a pass runs in program order.
PASS_PROCESSOR_S = 2
# The longest rubric logs only a part of this.
MAX_LOG_CHARS = 20 * 1024**2


def serve(control_fd: int) -> None:
    """Load the modules that scripts need, and be the fork server of a run."""
    _load_all()
    gc.enable()
    # Pages of memory that the collector does not touch stay shared with the children. Nothing is
    # collected first: that takes longer than any child would need for the little garbage of
    # loading.
    gc.freeze()
    ForkLoop(socket.socket(fileno=control_fd), be_home, HOME_GRACE_S).run()


def _load_all() -> None:
    # Scripts import these first of all, or others import them late.
    import_module("mind2web2.evaluator")
    import_module("importlib.readers")
    prepare(HomeJob, PassJob, Reply, *REPLIES)
    # Each pass would otherwise compile the signs and load the codec.
    address_flags("")
    codecs.lookup("utf-8-sig")
    # time_machine loads pytest where it is installed, which takes longer than all the rest.
    sys.modules.setdefault("pytest", None)  # type: ignore[arg-type]  # as the import system has it
    import_module("time_machine")
    if sys.modules["pytest"] is None:
        del sys.modules["pytest"]


def be_home(connection_fd: int) -> None:
    """Load the script of the first message, and start a process for each of its passes."""
    client = RpcClient(connection_fd)
    job = validate(HomeJob, client.receive().content)
    home = ScriptHome(job)
    client.send(Message("reply"))
    gc.freeze()
    ForkLoop(socket.socket(fileno=os.dup(connection_fd)), home.run).run()


class ScriptHome:
    """A process with a loaded script, whose forks are its passes."""

    def __init__(self, job: HomeJob) -> None:
        self._job = job
        if not job.is_loaded_late:
            job.limits.apply_to_this_process()
        if job.prices:
            # For scripts that ask what tokens cost.
            import_module("mind2web2.llm_client.prices").set_own_prices(job.prices)
        os.chdir(job.folder)
        sys.path[:] = job.import_paths
        allow_deep_trees()
        self._clock = ScriptClock(job.as_of, job.zone)
        self._clock.install()
        self._effects: list[str] = []
        self._take_effect: Callable[[str], object] = self._effects.append
        watch_effects(self._note_effect)
        self._stops = ScriptStops()
        # The files that were noted while the script was loaded.
        self._ignored: list[str] = []
        self._faults: list[str] = []
        self._evaluate: EvaluateAnswer | EvalScriptError | None = None
        if not job.is_loaded_late:
            files = _open_files()
            self._evaluate = self._load()
            is_shared = SHARED_MEMORY in self._effects or _open_files() != files
            if threading.active_count() > 1 or is_shared:
                # Threads would not live on in the forks, and files would have one position for all.
                raise SystemExit

    def _load(self) -> EvaluateAnswer | EvalScriptError:
        path = self._job.script_path
        misuses: list[EvalScriptError] = []
        reports = ScriptReports(
            path.name, misuses.append, self._ignored.append, self._faults.append
        )
        # The same numbers for each answer.
        random.seed(self._job.script_sha256)
        try:
            with script_reports(reports):
                evaluate = load_script(path)
        except EvalScriptError as error:
            return misuses[0] if misuses else error
        if misuses:
            return misuses[0]
        if file_sha256(path) != self._job.script_sha256:
            return EvalScriptError(
                f"script {path.name} was changed just now: run the same command again"
            )
        return evaluate

    def run(self, connection_fd: int) -> None:
        """Evaluate the answer of the first message in this process, and send how that ended."""
        client = RpcClient(connection_fd)
        job = validate(PassJob, client.receive().content)
        # The lines that a script printed before a crash are kept.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # typeshed: any TextIO
        random.seed(f"{job.call.answer_name} {job.call.answer}")
        judge = AnswerClient(client, job, self._stops)
        self._job.limits.apply_to_this_process()
        self._clock.begin(job.moment)
        if job.ahead is None:
            loop = asyncio.new_event_loop()
        else:
            questions = PassQuestions(
                client,
                job.known,
                job.ahead,
                partial(self._check, judge),
                waits=job.has_all_replies,
            )
            judge.questions = questions
            client.held = []
            _limit_processor_time(PASS_PROCESSOR_S)
            StandIns.are_met, StandIns.end = lambda: questions.is_open, questions.end
            time.sleep = lambda _seconds: None
            self._take_effect = questions.leave_to_program_order
            loop = PassLoop(questions.stuck)
            self._clock.stand_still(loop.moved_ns)
        asyncio.set_event_loop(loop)
        evaluation = loop.create_task(self._run_pass(job, client, judge))
        while not evaluation.done():
            # asyncio stops the whole loop at one of these in any task of the script's.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_until_complete(asyncio.wait({evaluation}))
        evaluation.result()
        # If this process ended with replies unread, the run could lose the result message.
        client.answer_until_closed(judge.check)

    def _note_effect(self, effect: str) -> None:
        self._take_effect(effect)

    def _check(self, judge: AnswerClient, template: int, text: str) -> str | None:
        """Check a reply for a pass that has ended; whatever its template does costs nothing."""
        self._take_effect = self._effects.append
        _limit_processor_time(self._job.limits.processor_s)
        return judge.check(template, text)

    async def _run_pass(self, job: PassJob, client: RpcClient, judge: AnswerClient) -> None:
        client.listen(judge.check)
        try:
            done = await self._outcome(job, client, judge)
        except Mind2Web2Error as error:
            done = Done(failure=Failure.of(error), used=judge.questions.used)
        with suppress(
            OSError, ValueError, AttributeError
        ):  # the script may have replaced or closed it
            sys.stdout.flush()
        if isinstance(judge.questions, PassQuestions):
            judge.questions.end_if_open()
            if done.failure is not None:
                # It may come from what a pass has otherwise, such as a clock that stands still.
                judge.questions.leave_to_program_order("raises an error")
        if client.held is not None:
            done = replace(done, notes=client.held)
        # After the last message, the run may end the process at any moment.
        try:
            client.send(Message("done", done))
        except Exception as error:  # whatever keeps a script's result from being sent
            failure = EvalScriptError(
                f"script {job.call.script_path.name} returned an unusable result: {error}"
            )
            client.send(Message("done", Done(failure=Failure.of(failure))))

    async def _outcome(self, job: PassJob, client: RpcClient, judge: AnswerClient) -> Done:
        captures: Any = RunCaptures() if job.with_captures else None
        task_cache = CacheFileSys(job.cache_dir)
        cache = AnswerCache(
            task_cache, job.stored_at_first, captures, partial(_note_write, client, judge)
        )
        logger = _logger(job, client, self._stops)
        log_unseen_errors(logger)

        async def ask_run(request: ServiceRequest, _ask: AskService) -> Any:
            return await judge.service(request)

        with (
            downloads_from(job.network),
            report_downloads(
                refused=partial(judge.note, "refused_downloads"),
                doubt=partial(judge.note, "doubts"),
            ),
            services_answered_by(ask_run),
        ):
            result = await self._result(job, judge, cache, logger)
        return Done(
            result=result,
            used=judge.questions.used,
            looked_up=sorted(cache.looked_up),
            captured=cache.captured,
            is_listed=cache.is_listed,
            clock=self._clock.reading(),
        )

    async def _result(
        self,
        job: PassJob,
        judge: AnswerClient,
        cache: AnswerCache,
        logger: logging.Logger,
    ) -> dict[str, Any]:
        guard = (
            LoopGuard(self._job.limits.block_s, self._stops) if job.ahead is None else nullcontext()
        )
        async with guard:
            evaluate = self._evaluate or self._load()
            if isinstance(evaluate, EvalScriptError):
                raise evaluate
            for name in self._ignored:
                judge.note("ignored_arguments", name)
            for fault in self._faults:
                judge.note("script_faults", fault)
            return await script_result(evaluate, job.call, judge, cache, logger, self._stops)


def _limit_processor_time(seconds: int) -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, hard_limit), hard_limit))


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 (numbers, not paths)


def _logger(job: PassJob, client: RpcClient, stops: ScriptStops) -> logging.Logger:
    """Return the answer's logger; records of the package are sent to the run as well."""
    package = logging.getLogger(PACKAGE)
    package.setLevel(job.package_level)
    package.propagate = False
    package.addHandler(RelayHandler(client.note, "package"))
    # The logger has a manager of its own, like the run's loggers.
    logger = logging.Manager(logging.RootLogger(logging.DEBUG)).getLogger(job.logger_name)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(RelayHandler(client.note, "answer", stops))
    return logger


class RelayHandler(logging.Handler):
    """Sends log records to the run.

    Args:
        to: whose they are, the answer's or the package's.
        stops: stops a script that logs without end, whatever logger it uses.
    """

    def __init__(
        self, note: Callable[..., None], to: str, stops: ScriptStops | None = None
    ) -> None:
        super().__init__()
        self._note = note
        self._to = to
        self._stops = stops
        self._chars = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, with its traceback as text."""
        try:
            sent = SentRecord.of(record)
            texts = (sent.text, sent.trace or "", sent.stack or "", *sent.extra.values())
            self._chars += sum(map(len, texts))
            self._note("log", to=self._to, record=sent)
        except Exception:  # the text of a value is its own code
            self.handleError(record)
        if self._stops is not None and self._chars > MAX_LOG_CHARS:
            self._stops.stop(f"it logged more than {MAX_LOG_CHARS // 1024**2} MB")


def _note_write(client: RpcClient, judge: AnswerClient) -> None:
    """Let the run prepare the pages of the cache again, as the script has stored one."""
    client.note("forget")
    judge.questions.counts[WRITES] += 1


class RunCaptures:
    """Stands for the captures of the run, which are in its own process."""

    async def capture_into(self, *_arguments: object, **_keywords: object) -> None:
        """Fail: the run captures pages for its own questions alone."""
        raise MachineError("pages of a run are captured in its own process")
