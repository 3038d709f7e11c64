"""The files that sum up results: a task's, an agent's and the one of all agents."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mind2web2.errors import ResultWriteError, StorageError
from mind2web2.runs.agent_summary import AgentSummary
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.result_facts import NO_FACTS, result_facts
from mind2web2.runs.results import (
    answer_results_dir,
    latest_result,
    newest_result_name,
    published,
    writing_in,
)
from mind2web2.runs.score_matrix import NO_RESULT, ScoredAnswer
from mind2web2.runs.shard_states import shard_caution
from mind2web2.runs.task_summary import (
    REMOVED,
    TaskEntry,
    read_entries,
    sound_entries,
    task_summary,
)
from mind2web2.storage.mirror import mirror
from mind2web2.storage.publication import (
    bring_here,
    is_in_object_store,
    remove_published,
)
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.garbage_collection import gc_paused
from mind2web2.utils.names import natural_key

log = logging.getLogger(__name__)

SUMMARY_NAME = "summary.json"
# Answers without a score, in a file of their own: other tools expect a number in every entry of a summary.
UNSCORED_NAME = "unscored.json"
ALL_RESULTS_NAME = "all_results.json"

# By task and agent.
_Merged = Mapping[str, Mapping[str, Sequence[TaskEntry]]]


def generate_result_summary(
    output_dir: str | Path, agent_name: str, task_ids: Iterable[str] | None = None
) -> dict[str, Any] | None:
    """Write an agent's ``summary.json`` from its result folders and return its content.

    Args:
        task_ids: the tasks that an agent should have answered, see ``agent_metrics``.

    Returns:
        ``None``, and nothing is written, if the agent has no results folder or nothing in it.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    found = summarised_answers(Path(output_dir), agent_name, task_ids)
    return None if found is None else found.summary.as_json()


@dataclass(frozen=True, slots=True)
class SummedUp:
    """An agent's answers and its metrics."""

    answers: list[ScoredAnswer]
    summary: AgentSummary


def summarised_answers(
    output_dir: Path, agent_name: str, task_ids: Iterable[str] | None = None
) -> SummedUp | None:
    """Write an agent's ``summary.json`` as ``generate_result_summary`` does, and return what it holds.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not (output_dir / agent_name).is_dir():
        return None

    def write() -> SummedUp | None:
        with writing_in(output_dir / agent_name):
            answers = agent_answers(output_dir, agent_name)
            if not answers:
                return None
            summary = stored_metrics(output_dir, agent_name, answers, task_ids)
            _write_json(output_dir / agent_name / SUMMARY_NAME, summary.as_json())
            return SummedUp(answers, summary)

    return published(output_dir / agent_name, write)


def stored_metrics(
    output_dir: Path,
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
) -> AgentSummary:
    """Return ``agent_metrics``, with a warning where the folder lacks shards of the evaluation."""
    return agent_metrics(
        agent_name, answers, task_ids, shard_caution(output_dir / agent_name)
    )


def merge_all_results(
    output_dir: str | Path,
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Write ``all_results.json`` from the task summaries of all agents and return its content.

    A task that has results but no readable summary is summed up from its result files.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    root = Path(output_dir)

    def write() -> _Merged:
        agents = [
            name for name in _folders(root) if mirror(root).is_current(root / name)
        ]
        for name in agents:  # other machines may have summed up more tasks since
            bring_here(root / name)
        with writing_in(root):
            merged = _merged_results(root, agents)
            _write_json(root / ALL_RESULTS_NAME, _merged_as_json(merged))
        return merged

    return _merged_as_json(published(root / ALL_RESULTS_NAME, write))


def _merged_as_json(merged: _Merged) -> dict[str, dict[str, list[dict[str, Any]]]]:
    return {
        task_id: {agent: _entries_as_json(own) for agent, own in by_agent.items()}
        for task_id, by_agent in merged.items()
    }


def _merged_results(root: Path, agents: Collection[str]) -> _Merged:
    merged: dict[str, dict[str, Sequence[TaskEntry]]] = {}
    if is_in_object_store(root):
        # Agents that this process has not pulled stay as they are published.
        for task_id, by_agent in _published_results(root / ALL_RESULTS_NAME).items():
            others = {name: own for name, own in by_agent.items() if name not in agents}
            if others:
                merged[task_id] = others
    for agent_name in agents:
        for task_id in _folders(root / agent_name):
            entries = read_entries(root / agent_name / task_id / SUMMARY_NAME)
            entries = entries or task_summary(task_answers(root, agent_name, task_id))
            entries = [entry for entry in entries if entry.score is not None]
            if entries:
                merged.setdefault(task_id, {})[agent_name] = entries
    return {task_id: merged[task_id] for task_id in sorted(merged, key=natural_key)}


def _published_results(path: Path) -> _Merged:
    try:
        content = json.loads(read_regular_file(path))
        return {
            task_id: {agent: sound_entries(own) for agent, own in by_agent.items()}
            for task_id, by_agent in content.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise StorageError(f"{path} is damaged: delete it in its bucket") from error


def write_task_summary(
    output_dir: Path,
    agent_name: str,
    task_id: str,
    unscored: Mapping[str, str],
    answer_names: Collection[str] | None = None,
    failed: Mapping[str, str] | None = None,
    elsewhere: Collection[str] = (),
) -> list[ScoredAnswer]:
    """Write a task's ``summary.json`` and ``unscored.json`` and return its answers.

    Args:
        unscored: why answers have no result in this run, by answer name. Such an answer is without a
            score even if an earlier run left a result: that may have judged another text or script.
        answer_names: the answers there are now. Results of others, left by earlier runs, are listed as
            ``removed`` and not counted, here or when the folder is read again.
        failed: why the agent failed, by answer name; such a run counts as 0.
        elsewhere: answers that other shards judge; they remain as they are listed.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    folder = output_dir / agent_name / task_id

    def write() -> list[ScoredAnswer]:
        with writing_in(folder):
            known = task_answers(output_dir, agent_name, task_id) if elsewhere else ()
            others = [answer for answer in known if answer.answer_name in elsewhere]
            names = answer_names
            if names is not None:
                names = {*names, *(answer.answer_name for answer in others)}
            answers, entries = _task_entries(
                folder,
                {**unscored, **unscored_in(others)},
                names,
                {**(failed or {}), **failed_in(others)},
            )
            scored = [entry for entry in entries if entry.score is not None]
            without_score = [entry for entry in entries if entry.score is None]
            _write_json(folder / SUMMARY_NAME, _entries_as_json(scored))
            if without_score:
                _write_json(folder / UNSCORED_NAME, _entries_as_json(without_score))
            elif (folder / UNSCORED_NAME).exists():
                remove_published(folder / UNSCORED_NAME)
        return answers

    return published(folder, write)


def unscored_in(answers: Iterable[ScoredAnswer]) -> dict[str, str]:
    """Return why answers have no score, by answer name."""
    return {
        answer.answer_name: answer.reason or NO_RESULT
        for answer in answers
        if answer.score is None
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
    answer_names: Collection[str] | None,
    failed: Mapping[str, str],
) -> tuple[list[ScoredAnswer], list[TaskEntry]]:
    found = _judged_answers(folder)
    names = found.keys() if answer_names is None else set(answer_names)
    current = sorted(names | unscored.keys() | failed.keys(), key=natural_key)
    answers = []
    for name in current:
        if name in failed:
            answer = ScoredAnswer(folder.name, name, score=0.0, reason=failed[name])
        elif name in found:
            answer = found[name]
        else:
            answer = ScoredAnswer(folder.name, name, reason=NO_RESULT)
        if name in unscored and name not in failed:
            answer = _without_score(answer, unscored[name])
        answers.append(answer)
    removed = [
        TaskEntry(
            answer_name=name,
            score=None,
            status=REMOVED,
            success=False,
            reason="the agent no longer has this answer; an earlier result is not counted",
        )
        for name in sorted(found.keys() - current, key=natural_key)
    ]
    entries = [
        _with_earlier_result(entry, folder) for entry in task_summary(answers) + removed
    ]
    return answers, entries


def agent_answers(output_dir: Path, agent_name: str) -> list[ScoredAnswer]:
    """Return every answer that an agent's result folders know of."""
    tasks = _folders(output_dir / agent_name)
    # A benchmark's results are a million objects, none of them in a cycle.
    with gc_paused():
        return [
            answer
            for task_id in tasks
            for answer in task_answers(output_dir, agent_name, task_id)
        ]


def task_answers(output_dir: Path, agent_name: str, task_id: str) -> list[ScoredAnswer]:
    """Return every answer to a task that its folder knows of, in natural order.

    The newest result file decides. The task's two summary files add scores of folders without result files,
    and answers that were found unscored since.
    """
    folder = output_dir / agent_name / task_id
    answers = _judged_answers(folder)
    for name in (SUMMARY_NAME, UNSCORED_NAME):
        for entry in read_entries(folder / name):
            _apply_entry(answers, entry, folder)
    return [answers[name] for name in sorted(answers, key=natural_key)]


def _apply_entry(
    answers: dict[str, ScoredAnswer], entry: TaskEntry, folder: Path
) -> None:
    name = entry.md_name
    newest = newest_result_name(_results_dir(folder, name))
    known = answers.get(name, ScoredAnswer(folder.name, name))
    if newest is not None and entry.earlier_result != newest:
        return
    if entry.status == REMOVED:
        answers.pop(name, None)
    elif entry.score is None:
        answers[name] = _without_score(known, entry.reason or NO_RESULT)
    else:
        answers[name] = replace(
            known,
            score=float(entry.score),
            reason=entry.reason,
            judge_model=None,
            facts=NO_FACTS,
        )


def _judged_answers(folder: Path) -> dict[str, ScoredAnswer]:
    return {
        f"{stem}.md": _judged_answer(folder, stem)
        for stem in _folders(folder)
        if (folder / stem / "results").is_dir()
        or (folder / stem / f"{stem}.md").is_file()
    }


def _judged_answer(folder: Path, stem: str) -> ScoredAnswer:
    answer = ScoredAnswer(
        folder.name, f"{stem}.md", word_count=_word_count(folder / stem / f"{stem}.md")
    )
    results_dir = _results_dir(folder, stem)
    result = latest_result(results_dir)
    if result is None:
        damaged = newest_result_name(results_dir)
        why = (
            f"its newest result {damaged} is damaged: evaluate it again"
            if damaged
            else NO_RESULT
        )
        return replace(answer, reason=why)
    content = result.content
    if content.is_edited:
        _warn_once(result.path.absolute(), result.path, content.content_sha256)
        why = f"its newest result {result.path.name} was changed after it was written: evaluate it again"
        return replace(answer, reason=why)
    if content.final_score is None:
        log.warning("no score from 0 to 1 in result %s", result.path)
        return replace(
            answer,
            reason=f"no score from 0 to 1 in its result {result.path.name}: evaluate it again",
        )
    return replace(
        answer,
        score=content.final_score,
        judge_model=content.judge_model,
        time_s=content.time_seconds,
        facts=result_facts(content),
    )


@lru_cache(maxsize=4096)
def _warn_once(_place: Path, path: Path, _content_sha256: str) -> None:
    # A command sums results up several times, each time for another file.
    log.warning("result was changed after it was written, counts as none path=%s", path)


def _results_dir(folder: Path, answer_name: str) -> Path:
    return answer_results_dir(
        folder.parent.parent, folder.parent.name, folder.name, answer_name
    )


def _word_count(path: Path) -> int | None:
    try:
        return len(
            read_regular_file(path).decode("utf-8-sig", errors="replace").split()
        )
    except OSError:
        return None


def _without_score(answer: ScoredAnswer, reason: str) -> ScoredAnswer:
    return replace(answer, score=None, judge_model=None, reason=reason, facts=NO_FACTS)


def _with_earlier_result(entry: TaskEntry, folder: Path) -> TaskEntry:
    # Names the result that does not count, so that a later one does: clocks and stamps can be alike.
    earlier = newest_result_name(_results_dir(folder, entry.answer_name))
    is_result_of_script = entry.score is not None and entry.reason is None
    if earlier is None or is_result_of_script:
        return entry
    return entry.model_copy(update={"earlier_result": earlier})


def _entries_as_json(entries: Iterable[TaskEntry]) -> list[dict[str, Any]]:
    return [entry.as_json() for entry in entries]


def _folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    names = [
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
    ]
    return sorted(names, key=natural_key)


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    try:
        # A lone surrogate from a file name becomes its JSON escape.
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ResultWriteError(f"cannot write {path}: {error.strerror}") from error
