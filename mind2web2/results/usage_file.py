"""``usage.json`` beside an agent's results: the judge's use in all runs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from mind2web2.results.shards import Shard
from mind2web2.results.stored_results import write_file, writing_in
from mind2web2.utils.files import read_regular_file

if TYPE_CHECKING:
    from mind2web2.judge.caching import CachingJudge

log = logging.getLogger(__name__)

USAGE_NAME = "usage.json"
# One line of totals each, so that the file stays small however often an agent is evaluated.
_RUNS_KEPT = 200


def write_usage(folder: Path, judge: CachingJudge, shard: Shard | None) -> None:
    """Add the run to ``usage.json``: the newest run by task, earlier ones as totals.

    Args:
        shard: the shard that the run judged, which tells apart runs of several machines.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not judge.usage.tasks:
        return
    run = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge_model": judge.settings.model,
        "endpoint": judge.endpoint,
        **({} if shard is None else {"shard": str(shard)}),
        **judge.usage.total().as_json(),
        "sent_again": dict(judge.usage.retries.reasons),
    }
    tasks = {task_id: judge.usage.tasks[task_id].as_json() for task_id in sorted(judge.usage.tasks)}
    with writing_in(folder):
        runs = [*_usage(folder).runs, UsageOfRun.model_validate(run)][-_RUNS_KEPT:]
        newest = UsageOfRun.model_validate({**run, "tasks": tasks})
        _write_usage(folder, UsageFile(newest_run=newest, runs=runs))


class UsageOfRun(BaseModel):
    """The judge's use in one run; the figures are passed on as they are."""

    model_config = ConfigDict(frozen=True, extra="allow")

    created: str = ""


class UsageFile(BaseModel):
    """The content of ``usage.json``."""

    model_config = ConfigDict(frozen=True)

    newest_run: UsageOfRun = UsageOfRun()
    runs: list[UsageOfRun]


def merge_usage(source: Path, into: Path) -> None:
    """Add the runs of another ``usage.json``, each one once; all are kept.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    other_usage = _usage(source)
    if not other_usage.runs:
        return
    with writing_in(into):
        ours = _usage(into)
        new = [run for run in other_usage.runs if run not in ours.runs]
        newest = max((ours.newest_run, other_usage.newest_run), key=_time_of)
        runs = sorted([*ours.runs, *new], key=_time_of)
        _write_usage(into, UsageFile(newest_run=newest, runs=runs))


def _time_of(run: UsageOfRun) -> str:
    return run.created


def _write_usage(folder: Path, content: UsageFile) -> None:
    written = json.dumps(content.model_dump(exclude_unset=True), ensure_ascii=True, indent=2)
    write_file(folder / USAGE_NAME, written + "\n")


def _usage(folder: Path) -> UsageFile:
    """Return the content of ``usage.json``, without runs where there is none or it is damaged."""
    path = folder / USAGE_NAME
    try:
        return UsageFile.model_validate(json.loads(read_regular_file(path)))
    except FileNotFoundError:
        return UsageFile(runs=[])
    except (OSError, ValueError, RecursionError) as error:
        log.warning(
            "%s is damaged and is replaced: the judge use of earlier runs is lost, nothing else "
            "(%s)",
            path,
            " ".join(str(error).split()),
        )
        return UsageFile(runs=[])
