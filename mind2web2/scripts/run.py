"""Runs an eval script on one answer, within its limits."""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from mind2web2.errors import EvalScriptError, JudgeError, Mind2Web2Error
from mind2web2.judge.protocol import STOPPED, Judge
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.scripts.isolation.messages import ScriptCall, checked_result
from mind2web2.scripts.limits import DualSemaphore, ScriptBlockedError, ScriptStops
from mind2web2.scripts.load import EvaluateAnswer, check_toolkit_names, load_eval_script
from mind2web2.utils.api_misuse import AddedNode, ScriptReports, script_reports
from mind2web2.utils.callers import is_installed
from mind2web2.utils.json_text import items

log = logging.getLogger(__name__)


def log_unseen_errors(logger: logging.Logger) -> None:
    """Log errors of tasks a script never awaits in one line each, unless the loop has a handler."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, task = context.get("exception"), context.get("future")
        if error is None or task is None:
            loop.default_exception_handler(context)
            return
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        script = next((name for name in reversed(files) if not is_installed(name)), "")
        reason = _where_and_what(error, Path(script))
        logger.warning("a task that the script started and did not await raised %s", reason)

    loop = asyncio.get_running_loop()
    if loop.get_exception_handler() is None:
        loop.set_exception_handler(handle)


# A script that swallows its cancellation is left behind after this long.
_GRACE_S = 5.0
# How much a script that asks the judge itself does at once under the semaphores it is given.
_SCRIPT_PERMITS = 30


def load_script(path: Path) -> EvaluateAnswer:
    """Import a script.

    Raises:
        EvalScriptError: it cannot be imported or has no proper ``evaluate_answer``; one line, with
            the script's line where there is one.
    """
    try:
        if path.is_file():
            check_toolkit_names(path)
        return load_eval_script(path)
    except EvalScriptError:
        raise
    except ScriptBlockedError as error:
        raise _blocked_error(path, error) from error
    except SyntaxError as error:
        raise EvalScriptError(
            f"script {path.name} has a syntax error in line {error.lineno}: {error.msg}"
        ) from error
    except BaseException as error:
        # Nothing but the script runs here: a KeyboardInterrupt is its own as well.
        raise EvalScriptError(
            f"script {path.name} cannot be used: {_where_and_what(error, path)}"
        ) from error


class ScriptClient(Judge, Protocol):
    """The client that a script receives."""

    def end(self) -> None:
        """Ask nothing more, for tasks that the script left running after its evaluation."""


async def script_result(
    evaluate_answer: EvaluateAnswer,
    call: ScriptCall,
    judge: ScriptClient,
    cache: AnswerCache,
    logger: logging.Logger,
    stops: ScriptStops,
    added: dict[str, AddedNode] | None = None,
) -> dict[str, Any]:
    """Return a script's result on one answer; no question is asked for it any more.

    Args:
        added: takes the places where the script adds nodes.

    Raises:
        EvalScriptError: the script failed.
        Mind2Web2Error: the judge's first failure, even if the script caught it.
    """
    try:
        ignore = partial(judge.note, "ignored_arguments")
        reports = ScriptReports(
            call.script_path.name,
            judge.fail,
            ignore,
            partial(judge.note, "script_faults"),
            {} if added is None else added,
        )
        with script_reports(reports):
            result = await _call(evaluate_answer, call, judge, cache, logger, stops)
        undecided = _undecided_ids(result)
        # Its score would depend on the judge's speed.
        late = judge.leaves_begun.keys() & judge.leaves_left_open.keys()
        if names := {judge.leaves_begun[each].id for each in late}.intersection(undecided):
            raise EvalScriptError(
                f"script {call.script_path.name} returned its result before the judge's verdict on "
                f"{min(names)!r} was there: await the verification"
            )
        reports.find_undecided(undecided)
    except Mind2Web2Error:
        # The judge's failure is the reason, even if the script turned it into another error.
        if judge.failure is not None:
            raise judge.failure from None
        raise
    finally:
        failure = judge.failure
        judge.end()
    if failure is not None:
        # An answer during which one happened gets no result (eval-scripts.md).
        raise failure
    return result


def _undecided_ids(result: Mapping[str, Any]) -> list[str]:
    """Return the undecided nodes without children of a result.

    A script may return one of its own making.
    """
    return [str(name) for name in items(result.get("undecided_leaves"))]


async def _call(
    evaluate_answer: EvaluateAnswer,
    call: ScriptCall,
    judge: ScriptClient,
    cache: AnswerCache,
    logger: logging.Logger,
    stops: ScriptStops,
) -> dict[str, Any]:
    # Permits of the script's own: a verification does not wait for those that the script holds.
    permits = DualSemaphore(asyncio.Semaphore(_SCRIPT_PERMITS), asyncio.Semaphore(_SCRIPT_PERMITS))
    takes_model = "model" in inspect.signature(evaluate_answer).parameters
    evaluate = partial(
        evaluate_answer,
        client=judge,
        answer=call.answer,
        agent_name=call.agent_name,
        answer_name=call.answer_name,
        cache=cache,
        semaphore=permits,
        logger=logger,
        **({"model": call.model} if takes_model else {}),
    )
    return await run_script(evaluate, call.script_path, logger, stops)


async def run_script(
    evaluate: Callable[[], Awaitable[Any]],
    path: Path,
    logger: logging.Logger,
    stops: ScriptStops,
) -> dict[str, Any]:
    """Call a script's evaluation and return its result.

    Raises:
        EvalScriptError: it raised, or returned what is not a result.
        JudgeError: a judge failure that the script let through.
    """
    log_unseen_errors(log)
    task = asyncio.ensure_future(_contained(evaluate, path))
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            await _stop(task, path, logger)
        if task.done() and not task.cancelled():
            task.exception()  # retrieved: the script's own failure is reported below
    if task.cancelled():
        raise EvalScriptError(f"script {path.name} cancelled itself")
    failure = task.exception()
    if stops.reason is not None:
        # Whatever the script made of being stopped.
        raise _blocked_error(path, ScriptBlockedError(stops.reason)) from failure
    if isinstance(failure, JudgeError | EvalScriptError):
        raise failure
    if failure is not None:
        logger.error("script failed", exc_info=failure)
        raise EvalScriptError(
            f"script {path.name} raised {_where_and_what(failure, path)}"
        ) from failure
    return checked_result(task.result(), path)


async def _contained(evaluate: Callable[[], Awaitable[Any]], path: Path) -> Any:
    try:
        return await evaluate()
    except SystemExit as error:
        raise EvalScriptError(f"script {path.name} called sys.exit({error.code!r})") from error
    except KeyboardInterrupt as error:
        # A run has a handler of its own for Ctrl-C, which raises nothing: this one is the script's.
        raise EvalScriptError(
            f"script {path.name} raised {_where_and_what(error, path)}"
        ) from error
    except ScriptBlockedError as error:
        raise _blocked_error(path, error) from error


def _blocked_error(path: Path, error: ScriptBlockedError) -> EvalScriptError:
    return EvalScriptError(
        f"script {path.name} was stopped: {error} (an endless loop, or time.sleep?)"
    )


async def _stop(task: asyncio.Future[Any], path: Path, logger: logging.Logger) -> None:
    task.cancel(STOPPED)
    await asyncio.wait({task}, timeout=_GRACE_S)
    if not task.done():
        logger.error("script swallows its cancellation and is left behind script=%s", path.name)


_NO_KEYBOARD = (
    ": a breakpoint has no keyboard here; call the script from a program of your own "
    "(docs/eval-scripts.md#debug-a-script)"
)


def _where_and_what(error: BaseException, path: Path) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    where = f" (line {lines[-1]})" if lines else ""
    text = " ".join(str(error).split())
    name = type(error).__name__
    # By its name: the debugger's module is not loaded for it.
    cure = _NO_KEYBOARD if name == "BdbQuit" else ""
    return f"{name}: {text}{where}{cure}" if text else f"{name}{where}{cure}"
