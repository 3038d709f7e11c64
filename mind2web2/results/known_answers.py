"""Every answer in an agent's result folders, with its score or a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.results.scored_answer import (
    NO_FACTS,
    NO_RESULT,
    ScoredAnswer,
)
from mind2web2.results.stored_results import (
    RESULT_FILES,
    answer_results_dir,
    newest_result_name,
)
from mind2web2.results.task_facts import TaskFacts
from mind2web2.results.task_summary import (
    REMOVED,
    SUMMARY_NAME,
    UNSCORED_NAME,
    TaskEntry,
    read_entries,
)
from mind2web2.utils.files import folder_names, read_regular_file
from mind2web2.utils.names import name_list, natural_key, nearest_name
from mind2web2.utils.program import command_line


def agent_answers(output_dir: Path, agent_name: str) -> list[ScoredAnswer]:
    """Return every answer that an agent's result folders know of."""
    tasks = folder_names(output_dir / agent_name)
    # A benchmark's results are a million objects, none of them in a cycle.
    return [answer for task_id in tasks for answer in task_answers(output_dir, agent_name, task_id)]


def task_answers(output_dir: Path, agent_name: str, task_id: str) -> list[ScoredAnswer]:
    """Return every answer to a task that its folder knows of, in natural order.

    The newest result file decides. The task's two summary files add scores of folders without
    result files, and answers that were found unscored since.
    """
    folder = output_dir / agent_name / task_id
    answers = judged_answers(TaskFacts(folder))
    for name in (SUMMARY_NAME, UNSCORED_NAME):
        for entry in read_entries(folder / name):
            _apply_entry(answers, entry, folder)
    return [answers[name] for name in sorted(answers, key=natural_key)]


def _apply_entry(answers: dict[str, ScoredAnswer], entry: TaskEntry, folder: Path) -> None:
    name = entry.md_name
    newest = newest_result_name(results_dir_of(folder, name))
    known = answers.get(name, ScoredAnswer(folder.name, name))
    if newest is not None and entry.earlier_result != newest:
        return
    if entry.status == REMOVED:
        answers.pop(name, None)
    elif entry.score is None:
        answers[name] = without_score(known, entry.reason or NO_RESULT)
    else:
        answers[name] = replace(
            known,
            score=float(entry.score),
            reason=entry.reason,
            judge_model=None,
            facts=NO_FACTS,
        )


def judged_answers(facts: TaskFacts) -> dict[str, ScoredAnswer]:
    """Return the judged answers of a task by name, from their newest results."""
    folder = facts.folder
    return {
        f"{stem}.md": _judged_answer(facts, stem)
        for stem in folder_names(folder)
        if (folder / stem / "results").is_dir() or (folder / stem / f"{stem}.md").is_file()
    }


def _judged_answer(facts: TaskFacts, stem: str) -> ScoredAnswer:
    folder = facts.folder
    words = word_count(folder / stem / f"{stem}.md")
    results_dir = results_dir_of(folder, stem)
    newest = newest_result_name(results_dir)
    if newest is None:
        return ScoredAnswer(folder.name, f"{stem}.md", word_count=words, reason=NO_RESULT)
    return replace(facts.answer(results_dir / newest), word_count=words)


def results_dir_of(folder: Path, answer_name: str) -> Path:
    """Return the folder of an answer's result files in the folder of its task."""
    return answer_results_dir(folder.parent.parent, folder.parent.name, folder.name, answer_name)


def without_score(answer: ScoredAnswer, reason: str) -> ScoredAnswer:
    """Return an answer as one that has no score."""
    return replace(answer, score=None, judge_model=None, reason=reason, facts=NO_FACTS)


def word_count(path: Path) -> int | None:
    """Return the number of words of an answer's file, ``None`` where it cannot be read."""
    try:
        return len(read_regular_file(path).decode("utf-8-sig", errors="replace").split())
    except OSError:
        return None


def require_results(eval_results_root: Path, agent_name: str) -> None:
    """Make sure that a run has left results of an agent, or the reasons why there are none.

    Raises:
        UsageError: no run has.
    """
    folder = eval_results_root / agent_name
    if not any(
        any(folder.glob(files)) for files in (f"*/*/results/{RESULT_FILES}", "*/summary.json")
    ):
        raise no_results(eval_results_root, agent_name)


def no_results(eval_results_root: Path, agent_name: str) -> UsageError:
    """Return the error for an agent without results, with the name that was probably meant."""
    others = {
        path.parts[-5] for path in eval_results_root.glob(f"*/*/*/results/{RESULT_FILES}")
    } - {agent_name}
    command = command_line("evaluate", agent_name)
    near = nearest_name(agent_name, others)
    meant = "" if near is None else f"did you mean {near}? Otherwise "
    known = (
        f"There are results of {name_list(others)}"
        if others
        else f"If there are some, change from {Path.cwd()} to your project's folder, or name "
        "theirs with --eval_results_root"
    )
    return UsageError(
        f"no results of agent {agent_name} under {eval_results_root}: {meant}run {command} "
        f"first. {known}"
    )
