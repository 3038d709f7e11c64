"""Whether summaries say what the results say: a task's, an agent's and the one of all agents."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mind2web2.metrics import agent_metrics
from mind2web2.result_checks import Finding, Kind
from mind2web2.score_grid import ScoredAnswer
from mind2web2.summaries import (
    ALL_RESULTS_NAME,
    REMOVED,
    SUMMARY_NAME,
    UNSCORED_NAME,
    agent_answers,
    task_answers,
    task_summary,
)
from mind2web2.utils.foreign_files import read_regular_file

# They are rounded to so many digits, and one Python may round the last one otherwise than the next.
_TOLERANCE = 1.01e-4
_MAX_NAMED = 5


class _UnreadableError(ValueError):
    """A summary is damaged; the text says how."""


def task_summary_findings(eval_results_root: Path, agent_name: str, task_id: str) -> Iterator[Finding]:
    """Yield how a task's ``summary.json`` differs from the results."""
    folder = eval_results_root / agent_name / task_id
    path = folder / SUMMARY_NAME
    answers = task_answers(eval_results_root, agent_name, task_id)
    if not answers and not path.exists():
        return
    try:
        entries = _entries(_read(path)) | _unscored_entries(folder / UNSCORED_NAME)
    except FileNotFoundError:
        yield Finding("missing", f"there is no {SUMMARY_NAME}")
        return
    except _UnreadableError as error:
        yield Finding("wrong", f"{SUMMARY_NAME} is damaged: {error}")
        return
    kind: Kind = "stale" if _is_older(path, folder.glob("*/results/*.md.json")) else "wrong"
    for derived in task_summary(answers):
        name = derived["answer_name"]
        entry = entries.pop(name, None)
        if entry is None:
            yield Finding(kind, f"{SUMMARY_NAME} lacks {name}")
            continue
        for field in ("score", "status", "success"):
            if not _is_same(entry.get(field), derived[field]):
                yield Finding(
                    kind,
                    f"{SUMMARY_NAME} has {field} {entry.get(field)!r} of {name}, and by its result it is "
                    f"{derived[field]!r}",
                )
    for name, entry in entries.items():
        if entry.get("status") != REMOVED:
            yield Finding(kind, f"{SUMMARY_NAME} has {name}, of which there is nothing else")


def agent_summary_findings(eval_results_root: Path, agent_name: str) -> Iterator[Finding]:
    """Yield how an agent's ``summary.json`` and its part of ``all_results.json`` differ from the results."""
    folder = eval_results_root / agent_name
    answers = agent_answers(eval_results_root, agent_name)
    path = folder / SUMMARY_NAME
    try:
        content = _read(path)
        if not isinstance(content, dict):
            raise _UnreadableError("it is no object")
    except FileNotFoundError:
        yield Finding("missing", f"there is no {SUMMARY_NAME} of the agent")
    except _UnreadableError as error:
        yield Finding("wrong", f"{SUMMARY_NAME} of the agent is damaged: {error}")
    else:
        kind: Kind = "stale" if _is_older(path, folder.glob("*/*/results/*.md.json")) else "wrong"
        differing = list(_differences(content, _derived(agent_name, answers, content)))
        if differing:
            more = f" and {len(differing) - _MAX_NAMED} more" if len(differing) > _MAX_NAMED else ""
            listed = ", ".join(differing[:_MAX_NAMED])
            yield Finding(kind, f"{SUMMARY_NAME} of the agent is not what the results say: {listed}{more}")
    yield from _all_results_findings(eval_results_root, agent_name)


def _derived(agent_name: str, answers: Sequence[ScoredAnswer], content: Mapping[str, Any]) -> dict[str, Any]:
    task_ids = content.get("tasks") if content.get("missing_counted_as_zero") else None
    metrics = agent_metrics(agent_name, answers, task_ids if isinstance(task_ids, dict) else None)
    # As a reader of the file finds it.
    derived: dict[str, Any] = json.loads(json.dumps(metrics.summary()))
    return derived


def _differences(content: Mapping[str, Any], derived: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield the names of what differs, but for what another version does not say or says beside."""
    for name, value in derived.items():
        where = f"{place}{name}"
        if name == "warnings" or (name not in content and name not in _PUBLISHED):
            continue
        found = content.get(name)
        if isinstance(value, dict) and isinstance(found, dict):
            if name in ("tasks", "per_run"):
                yield from (f"{where}.{key}" for key in sorted(value.keys() ^ found.keys()))
            yield from _differences(found, value, f"{where}.")
        elif not _is_same(found, value):
            yield f"{where} {found!r} (by the results {value!r})"


# What every version says of an agent (layouts.md).
_PUBLISHED = frozenset(
    {
        "agent_name",
        "num_tasks",
        "num_runs",
        "avg_score",
        "avg_score_std",
        "success_rate",
        "success_rate_std",
        "per_run",
        "tasks",
    }
)


def _all_results_findings(eval_results_root: Path, agent_name: str) -> Iterator[Finding]:
    path = eval_results_root / ALL_RESULTS_NAME
    try:
        content = _read(path)
        if not isinstance(content, dict):
            raise _UnreadableError("it is no object")
    except FileNotFoundError:
        yield Finding("missing", f"there is no {ALL_RESULTS_NAME}")
        return
    except _UnreadableError as error:
        yield Finding("wrong", f"{ALL_RESULTS_NAME} is damaged: {error}")
        return
    summaries = sorted((eval_results_root / agent_name).glob(f"*/{SUMMARY_NAME}"))
    kind: Kind = "stale" if _is_older(path, summaries) else "wrong"
    for summary in summaries:
        task_id = summary.parent.name
        by_agent = content.get(task_id)
        merged = by_agent.get(agent_name) if isinstance(by_agent, dict) else None
        try:
            is_same = merged == _read(summary)
        except (FileNotFoundError, _UnreadableError):
            continue  # which is told of the summary itself
        if not is_same:
            yield Finding(kind, f"{ALL_RESULTS_NAME} does not have what {task_id}/{SUMMARY_NAME} says")


def _read(path: Path) -> Any:
    # Any: what a file of JSON holds.
    try:
        return json.loads(read_regular_file(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _UnreadableError(str(error)) from error


def _entries(content: object) -> dict[str, dict[str, Any]]:
    if not isinstance(content, list):
        raise _UnreadableError("it is no list of answers")
    entries: dict[str, dict[str, Any]] = {}
    for entry in content:
        if not isinstance(entry, dict) or not isinstance(entry.get("answer_name"), str):
            raise _UnreadableError("one of its entries is none of an answer")
        entries[f"{entry['answer_name'].removesuffix('.md')}.md"] = entry
    return entries


def _unscored_entries(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return _entries(_read(path))
    except FileNotFoundError:
        return {}


def _is_older(path: Path, others: Iterator[Path] | Sequence[Path]) -> bool:
    """Tell whether one of the others was written later: a run that was stopped has not summed them up yet."""
    written_ns = path.stat().st_mtime_ns
    return any(other.stat().st_mtime_ns > written_ns for other in others)


def _is_same(found: object, derived: object) -> bool:
    if isinstance(derived, float | int) and not isinstance(derived, bool):
        if not isinstance(found, float | int) or isinstance(found, bool):
            return False
        return math.isclose(found, derived, rel_tol=0.0, abs_tol=_TOLERANCE)
    return found == derived
