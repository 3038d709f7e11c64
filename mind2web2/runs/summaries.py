"""The files that sum up results: a task's, an agent's and the one of all agents."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mind2web2.errors import ResultWriteError, StorageError
from mind2web2.rubric.verdicts import is_score
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
from mind2web2.storage.mirror import mirror
from mind2web2.storage.publication import (
    bring_here,
    is_in_object_store,
    remove_published,
)
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.garbage_collection import gc_paused
from mind2web2.utils.names import is_file_name, natural_key

log = logging.getLogger(__name__)

SUMMARY_NAME = "summary.json"
# Answers without a score, in a file of their own: other tools expect a number in every entry of a summary.
UNSCORED_NAME = "unscored.json"
ALL_RESULTS_NAME = "all_results.json"

UNSCORED = "unscored"
REMOVED = "removed"


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
    return None if found is None else found[1]


def summarised_answers(
    output_dir: Path, agent_name: str, task_ids: Iterable[str] | None = None
) -> tuple[list[ScoredAnswer], dict[str, Any]] | None:
    """Do as ``generate_result_summary`` does, and return the answers beside the content.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not (output_dir / agent_name).is_dir():
        return None

    def write() -> tuple[list[ScoredAnswer], dict[str, Any]] | None:
        with writing_in(output_dir / agent_name):
            answers = agent_answers(output_dir, agent_name)
            if not answers:
                return None
            metrics = stored_metrics(output_dir, agent_name, answers, task_ids)
            _write_json(output_dir / agent_name / SUMMARY_NAME, metrics)
            return answers, metrics

    return published(output_dir / agent_name, write)


def stored_metrics(
    output_dir: Path,
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Do as ``agent_metrics`` does, with a warning where the folder lacks shards of the evaluation."""
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

    def write() -> dict[str, dict[str, list[dict[str, Any]]]]:
        agents = [
            name for name in _folders(root) if mirror(root).is_current(root / name)
        ]
        for name in agents:  # other machines may have summed up more tasks since
            bring_here(root / name)
        with writing_in(root):
            merged = _merged_results(root, agents)
            _write_json(root / ALL_RESULTS_NAME, merged)
        return merged

    return published(root / ALL_RESULTS_NAME, write)


def _merged_results(
    root: Path, agents: Collection[str]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    merged: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if is_in_object_store(root):
        # Agents that this process has not pulled stay as they are published.
        for task_id, by_agent in _published_results(root / ALL_RESULTS_NAME).items():
            if others := {
                name: by_agent[name] for name in by_agent if name not in agents
            }:
                merged[task_id] = others
    for agent_name in agents:
        for task_id in _folders(root / agent_name):
            entries = _entries_of(root / agent_name / task_id / SUMMARY_NAME)
            entries = entries or task_summary(task_answers(root, agent_name, task_id))
            entries = [entry for entry in entries if entry["score"] is not None]
            if entries:
                merged.setdefault(task_id, {})[agent_name] = entries
    return {task_id: merged[task_id] for task_id in sorted(merged, key=natural_key)}


def _published_results(path: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    try:
        content: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(
            read_regular_file(path)
        )
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: delete it in its bucket") from error
    return content


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
            _write_json(
                folder / SUMMARY_NAME,
                [entry for entry in entries if entry["score"] is not None],
            )
            without_score = [entry for entry in entries if entry["score"] is None]
            if without_score:
                _write_json(folder / UNSCORED_NAME, without_score)
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
) -> tuple[list[ScoredAnswer], list[dict[str, Any]]]:
    found = _judged_answers(folder)
    names = found.keys() if answer_names is None else set(answer_names)
    current = sorted(names | unscored.keys() | failed.keys(), key=natural_key)
    answers = [
        found.get(name, ScoredAnswer(folder.name, name, reason=NO_RESULT))
        for name in current
    ]
    answers = [_marked(answer, unscored.get(answer.answer_name)) for answer in answers]
    answers = [
        ScoredAnswer(
            folder.name,
            answer.answer_name,
            score=0.0,
            reason=failed[answer.answer_name],
        )
        if answer.answer_name in failed
        else answer
        for answer in answers
    ]
    reason = "the agent no longer has this answer; an earlier result is not counted"
    removed = [
        {
            "answer_name": name,
            "score": None,
            "status": REMOVED,
            "success": False,
            "reason": reason,
        }
        for name in sorted(found.keys() - current, key=natural_key)
    ]
    entries = [
        _with_earlier_result(entry, folder) for entry in task_summary(answers) + removed
    ]
    return answers, entries


def task_summary(answers: Iterable[ScoredAnswer]) -> list[dict[str, Any]]:
    """Return the entries of a task's ``summary.json`` and ``unscored.json``.

    An answer without a score has the status ``unscored``, as it did not fail, and a ``reason``.
    """
    entries = []
    for answer in answers:
        entry: dict[str, Any] = {
            "answer_name": answer.answer_name,
            "score": answer.score,
            "status": UNSCORED
            if answer.score is None
            else "success"
            if answer.score > 0
            else "failed",
            "success": answer.score == 1.0,
        }
        if answer.score is None or answer.reason is not None:
            entry["reason"] = answer.reason or NO_RESULT
        entries.append(entry)
    return entries


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
    for entry in (
        *_entries_of(folder / SUMMARY_NAME),
        *_entries_of(folder / UNSCORED_NAME),
    ):
        _apply_entry(answers, entry, folder)
    return [answers[name] for name in sorted(answers, key=natural_key)]


def _apply_entry(
    answers: dict[str, ScoredAnswer], entry: dict[str, Any], folder: Path
) -> None:
    name = f"{entry['answer_name'].removesuffix('.md')}.md"
    newest = newest_result_name(_results_dir(folder, name))
    known = answers.get(name, ScoredAnswer(folder.name, name))
    if newest is not None and entry.get("earlier_result") != newest:
        return
    if entry.get("status") == REMOVED:
        answers.pop(name, None)
    elif entry["score"] is None:
        answers[name] = _marked(known, str(entry.get("reason", NO_RESULT)))
    else:
        reason = entry.get("reason")
        answers[name] = replace(
            known,
            score=float(entry["score"]),
            reason=None if reason is None else str(reason),
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


def _marked(answer: ScoredAnswer, reason: str | None) -> ScoredAnswer:
    if reason is None:
        return answer
    return replace(answer, score=None, judge_model=None, reason=reason, facts=NO_FACTS)


def _with_earlier_result(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    # Names the result that does not count, so that a later one does: clocks and stamps can be alike.
    earlier = newest_result_name(_results_dir(folder, entry["answer_name"]))
    is_scored = entry["score"] is not None and "reason" not in entry
    return (
        entry if earlier is None or is_scored else entry | {"earlier_result": earlier}
    )


def _entries_of(summary_path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(read_regular_file(summary_path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        log.warning("ignored damaged summary %s: %s", summary_path, error)
        return []
    entries = (
        [entry for entry in content if _is_entry(entry)]
        if isinstance(content, list)
        else []
    )
    if not isinstance(content, list) or len(entries) < len(content):
        log.warning("ignored malformed entries in %s", summary_path)
    return entries


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not is_file_name(entry.get("answer_name")):
        return False
    return "score" in entry and (entry["score"] is None or is_score(entry["score"]))


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
