"""Facts that the files of answers add: length, time, and the answers without a result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.results.answers import answer_file, select_answers
from mind2web2.results.known_answers import word_count
from mind2web2.results.scored_answer import NEVER_EVALUATED, ScoredAnswer
from mind2web2.results.shards import shard_test
from mind2web2.utils.path_config import PathConfig


def with_file_facts(answers: list[ScoredAnswer], folder: Path) -> list[ScoredAnswer]:
    """Return answers with the length and the time that their results lack and their files have.

    Answers without a result, and runs that failed, have neither.

    Args:
        folder: of the agent's answers.
    """
    return [
        answer
        if answer.reason or (answer.word_count is not None and answer.time_s is not None)
        else _with_file_facts(answer, folder / answer.task_id / answer.answer_name)
        for answer in answers
    ]


def with_unevaluated(
    answers: list[ScoredAnswer], paths: PathConfig, agent_name: str
) -> list[ScoredAnswer]:
    """Return answers with those of the agent's files that no result folder knows of.

    Results are often exchanged without the files. Answers of other shards are left out.
    """
    try:
        files = select_answers(paths, agent_name)
    except UsageError:
        return answers
    known = {(answer.task_id, answer.answer_name) for answer in answers}
    holds = shard_test(paths.eval_results_root / agent_name)
    places = [(task_id, file.name) for task_id in files for file in files[task_id]]
    return answers + [
        ScoredAnswer(*place, reason=NEVER_EVALUATED)
        for place in places
        if place not in known and holds(*place)
    ]


def _with_file_facts(answer: ScoredAnswer, path: Path) -> ScoredAnswer:
    words, time_s = answer.word_count, answer.time_s
    return replace(
        answer,
        word_count=word_count(path) if words is None else words,
        time_s=answer_file(path).time_s if time_s is None and path.is_file() else time_s,
    )
