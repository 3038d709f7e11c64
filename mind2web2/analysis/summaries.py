"""The files that sum up results: a task's, an agent's and the one of all agents."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mind2web2.analysis.metrics import agent_metrics
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.known_answers import (
    agent_answers,
    judged_answers,
    results_dir_of,
    task_answers,
    without_score,
)
from mind2web2.results.scored_answer import NO_RESULT, ScoredAnswer
from mind2web2.results.shards import shard_caution
from mind2web2.results.stored_results import (
    newest_result_name,
    writing_in,
)
from mind2web2.results.task_facts import TaskFacts
from mind2web2.results.task_summary import (
    REMOVED,
    SUMMARY_NAME,
    TaskEntry,
    read_entries,
    scored_documents,
    task_summary,
    write_entries,
    write_summary_file,
)
from mind2web2.utils.files import folder_names
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import natural_key

log = logging.getLogger(__name__)

ALL_RESULTS_NAME = "all_results.json"


def generate_result_summary(
    output_dir: str | Path, agent_name: str, task_ids: Iterable[str] | None = None
) -> JsonObject | None:
    """Write an agent's ``summary.json`` from its result folders and return its content.

    Args:
        task_ids: the tasks that an agent should have answered, see ``agent_metrics``.

    Returns:
        ``None``, and nothing is written, if the agent has no results folder or nothing in it.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    summed = summarise_answers(Path(output_dir), agent_name, task_ids)
    return None if summed is None else summed.summary.as_json()


@dataclass(frozen=True, slots=True)
class SummedUp:
    """An agent's answers and its metrics."""

    answers: list[ScoredAnswer]
    summary: AgentSummary


def summarise_answers(
    output_dir: Path,
    agent_name: str,
    task_ids: Iterable[str] | None = None,
) -> SummedUp | None:
    """Write an agent's ``summary.json``, and return what it holds.

    The file is written as ``generate_result_summary`` writes it.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not (output_dir / agent_name).is_dir():
        return None
    with writing_in(output_dir / agent_name):
        summed = summed_up(output_dir, agent_name, task_ids)
        if summed is not None:
            content = summed.summary.as_json()
            write_summary_file(output_dir / agent_name / SUMMARY_NAME, content)
        return summed


def summed_up(output_dir: Path, agent_name: str, task_ids: Iterable[str] | None) -> SummedUp | None:
    """Return an agent's answers and metrics, ``None`` without answers."""
    answers = agent_answers(output_dir, agent_name)
    if not answers:
        return None
    return SummedUp(answers, stored_metrics(output_dir, agent_name, answers, task_ids))


def stored_metrics(
    output_dir: Path,
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
) -> AgentSummary:
    """Return ``agent_metrics``, with a warning where the folder lacks shards of the evaluation."""
    return agent_metrics(agent_name, answers, task_ids, shard_caution(output_dir / agent_name))


def merge_all_results(
    output_dir: str | Path,
) -> dict[str, dict[str, list[JsonObject]]]:
    """Write ``all_results.json`` from the task summaries of all agents and return its content.

    A task that has results but no readable summary is summed up from its result files.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    root = Path(output_dir)
    with writing_in(root):
        merged = _merged_results(root)
        write_summary_file(root / ALL_RESULTS_NAME, merged)
    return merged


def _merged_results(root: Path) -> dict[str, dict[str, list[JsonObject]]]:
    merged: dict[str, dict[str, list[JsonObject]]] = {}
    for agent_name in folder_names(root):
        for task_id in folder_names(root / agent_name):
            entries = read_entries(root / agent_name / task_id / SUMMARY_NAME)
            entries = entries or task_summary(task_answers(root, agent_name, task_id))
            scored = scored_documents(entries)
            if scored:
                merged.setdefault(task_id, {})[agent_name] = scored
    return {task_id: merged[task_id] for task_id in sorted(merged, key=natural_key)}


def write_task_summary(
    output_dir: Path,
    agent_name: str,
    task_id: str,
    unscored: Mapping[str, str],
    answer_names: Collection[str],
    failed: Mapping[str, str],
    elsewhere: Collection[str] = (),
) -> list[ScoredAnswer]:
    """Write a task's ``summary.json`` and ``unscored.json`` and return its answers.

    Args:
        unscored: why answers have no result in this run, by answer name. Such an answer is without
            a score even if an earlier run left a result: that may have judged another text or
            script.
        answer_names: the answers there are now. Results of others, left by earlier runs, are listed
            as ``removed`` and not counted, here or when the folder is read again.
        failed: why the agent failed, by answer name; such a run counts as 0.
        elsewhere: answers that other shards judge; they remain as they are listed.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    folder = output_dir / agent_name / task_id
    with writing_in(folder):
        # Reads all results of the task, which only shards need.
        known = task_answers(output_dir, agent_name, task_id) if elsewhere else []
        others = [answer for answer in known if answer.answer_name in elsewhere]
        answers, entries = _task_entries(
            folder,
            {**unscored, **unscored_in(others)},
            {*answer_names, *(answer.answer_name for answer in others)},
            {**failed, **failed_in(others)},
        )
        write_entries(folder, entries)
    return answers


def unscored_in(answers: Iterable[ScoredAnswer]) -> dict[str, str]:
    """Return why answers have no score, by answer name."""
    return {
        answer.answer_name: answer.reason or NO_RESULT for answer in answers if answer.score is None
    }


def failed_in(answers: Iterable[ScoredAnswer]) -> dict[str, str]:
    """Return why the agent failed at runs that count as 0, by answer name."""
    return {
        answer.answer_name: answer.reason
        for answer in answers
        if answer.score is not None and answer.reason is not None
    }


def _task_entries(
    folder: Path,
    unscored: Mapping[str, str],
    names: set[str],
    failed: Mapping[str, str],
) -> tuple[list[ScoredAnswer], list[TaskEntry]]:
    facts = TaskFacts(folder)
    judged = judged_answers(facts)
    facts.write()
    current = sorted(names | unscored.keys() | failed.keys(), key=natural_key)
    answers = []
    for name in current:
        if name in failed:
            answer = ScoredAnswer(folder.name, name, score=0.0, reason=failed[name])
        elif name in judged:
            answer = judged[name]
        else:
            answer = ScoredAnswer(folder.name, name, reason=NO_RESULT)
        if name in unscored and name not in failed:
            answer = without_score(answer, unscored[name])
        answers.append(answer)
    removed = [
        TaskEntry(
            answer_name=name,
            score=None,
            status=REMOVED,
            success=False,
            reason="the agent no longer has this answer; an earlier result is not counted",
        )
        for name in sorted(judged.keys() - current, key=natural_key)
    ]
    entries = [_with_earlier_result(entry, folder) for entry in task_summary(answers) + removed]
    return answers, entries


def _with_earlier_result(entry: TaskEntry, folder: Path) -> TaskEntry:
    # Names the result that does not count, so that a later one does: clocks and stamps can be
    # alike.
    earlier = newest_result_name(results_dir_of(folder, entry.answer_name))
    is_result_of_script = entry.score is not None and entry.reason is None
    if earlier is None or is_result_of_script:
        return entry
    return entry.model_copy(update={"earlier_result": earlier})
