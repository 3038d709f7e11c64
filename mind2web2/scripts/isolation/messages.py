"""The messages between a script's process and its run, from the script's call to its result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from mind2web2.capture.models import NetworkSettings
from mind2web2.errors import CaptureError, EvalScriptError, PageBugError
from mind2web2.judge.protocol import JudgeLedger
from mind2web2.llm_client.chat import ChatReply, OwnPrice
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord, is_score
from mind2web2.scripts.limits import ScriptLimits


@dataclass(frozen=True)
class ScriptCall:
    """The arguments of a script, beside client, cache and logger.

    Args:
        script_sha256: of the script that is meant.
        model: the run's, whatever the script does with it.
    """

    script_path: Path
    script_sha256: str
    agent_name: str
    answer_name: str
    answer: str
    model: str


@dataclass(frozen=True)
class SentTemplate:
    """A template that a reply is to fill: one of the toolkit's own by name, or with its form."""

    name: str
    form: dict[str, Any] | None = None


@dataclass(frozen=True)
class SentRequest:
    """A request of a script; ``ChatRequest`` says what the fields are."""

    model: str
    messages: list[dict[str, Any]]
    template: SentTemplate | None
    temperature: float | None
    reasoning_effort: str | None
    extra: dict[str, Any]


# A verdict with its evidence.
Judged = tuple[bool, Evidence]


# The JSON that fills a template, ``None`` where there is nothing to fill it from, and the record.
Filled = tuple[str | None, ExtractionRecord]


# A page's images, as data URLs, and its text.
PageInfo = tuple[list[str], str]


# The types of the run's replies to a script.
REPLIES = (ChatReply, Filled, Judged, PageInfo, JudgeLedger, str | None)


@dataclass(frozen=True)
class HomeJob:
    """A script, with what all its passes share.

    Args:
        script_sha256: of the script that is meant.
        folder: the working directory.
        import_paths: ``sys.path``.
        prices: the user's own, by model.
        as_of: where the script's clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the process.
        is_loaded_late: each pass loads the script itself.
    """

    script_path: Path
    script_sha256: str
    limits: ScriptLimits
    folder: Path
    import_paths: list[str]
    prices: dict[str, OwnPrice]
    as_of: datetime | None = None
    zone: str | None = None
    is_loaded_late: bool = False


@dataclass(frozen=True)
class PassJob:
    """A pass of a script on an answer, with the settings of the run.

    Args:
        ahead: how far the script goes on with stand-ins; ``None`` for program order.
        known: the replies so far, as JSON, by the keys of their questions.
        has_all_replies: the run replies to each question at once; a pass waits for that.
        moment: where the clock stands still, unless it stands at ``HomeJob.as_of``.
        logger_name: of the answer's logger.
        package_level: the least level of the package's own log.
        with_captures: the run captures pages that are not stored.
        stored_at_first: addresses of the pages that were stored before the run (``PageLibrary``).
    """

    call: ScriptCall
    ahead: Ahead | None
    moment: datetime
    shows_images: bool
    endpoint: str
    cache_dir: Path
    logger_name: str
    package_level: int
    with_captures: bool
    stored_at_first: frozenset[str] | None
    network: NetworkSettings
    known: dict[str, str]
    has_all_replies: bool = False


# How far a script goes on with stand-ins for replies that are not known yet: it looks into values,
# or it goes on as if every claim held, too.
Ahead = Literal["values", "gates"]


# Errors that a question about one page may have; any other costs the answer its result.
PAGE_ERRORS = (CaptureError.__name__, PageBugError.__name__)


def checked_result(result: Any, path: Path) -> dict[str, Any]:
    """Return what a script returned if it is a result (eval-scripts.md, "Summary").

    Raises:
        EvalScriptError: it is not; the text says why.
    """
    if not isinstance(result, dict):
        raise EvalScriptError(
            f"script {path.name} returned {type(result).__name__}; expected evaluator.get_summary()"
        )
    score = result.get("final_score")
    if not is_score(score):
        raise EvalScriptError(
            f"script {path.name} returned final_score {score!r}; expected a number from 0 to 1"
        )
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise EvalScriptError(f"script {path.name} returned what is not JSON: {error}") from error
    return result
