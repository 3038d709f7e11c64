"""What earlier evaluations took, read from results and from the store of judgments; neither is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt, ValidationError

from mind2web2.judgment_reading import reading
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.recorded_judge import JudgeSettings
from mind2web2.results import latest_result
from mind2web2.store_cures import ESTIMATING

_STORED = """
    SELECT task_id, answer_name, COUNT(*), SUM(attempts), SUM(input_tokens), SUM(cached_tokens),
           SUM(output_tokens)
    FROM judgments
    WHERE purpose <> 'gate' AND model = ? AND temperature IS ? AND reasoning_effort IS ?
          AND endpoint = COALESCE(?, endpoint)
    GROUP BY task_id, answer_name
"""


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """What one whole evaluation took, reused judgments included."""

    model: str
    judgments: int
    tokens: TokenUsage


@dataclass(frozen=True, slots=True)
class StoredUsage:
    """What the stored judgments about one answer took."""

    task_id: str | None
    answer_name: str | None
    judgments: int
    requests: int
    tokens: TokenUsage


class _JudgeUsage(BaseModel):
    judgments: NonNegativeInt
    input_tokens: NonNegativeInt
    cached_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt


class _Result(BaseModel):
    judge_model: str
    judge_usage: _JudgeUsage


def task_usage(eval_results_root: Path, agent_name: str, task_id: str) -> list[AnswerUsage]:
    """Return what the evaluations of an agent's answers to a task took, by their newest results."""
    folders = sorted((eval_results_root / agent_name / task_id).glob("*/results"))
    return [usage for folder in folders if (usage := _usage_of(folder)) is not None]


def agent_usage(eval_results_root: Path, agent_name: str) -> list[AnswerUsage]:
    """Return what the evaluations of all of an agent's answers took."""
    tasks = sorted(folder.name for folder in (eval_results_root / agent_name).glob("*/"))
    return [usage for task_id in tasks for usage in task_usage(eval_results_root, agent_name, task_id)]


def _usage_of(folder: Path) -> AnswerUsage | None:
    found = latest_result(folder)
    if found is None:
        return None
    try:
        result = _Result.model_validate(found.content)
    except ValidationError:  # another tool's
        return None
    usage = result.judge_usage
    if usage.judgments and not usage.input_tokens:
        # A client that tells no tokens, such as one of a caller's own.
        return None
    tokens = TokenUsage(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return AnswerUsage(result.judge_model, usage.judgments, tokens)


def stored_usage(path: Path, settings: JudgeSettings, endpoint: str | None) -> list[StoredUsage]:
    """Return what the judgments of one judge in a store took, by answer; nothing where there is no store.

    Args:
        endpoint: the judge's server; ``None`` for any.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    if not path.is_file():
        return []
    judge = (settings.model, settings.temperature, settings.reasoning_effort, endpoint)
    with reading(path, ESTIMATING) as connection:
        return list(_rows(connection, judge))


def _rows(connection: sqlite3.Connection, judge: tuple[object, ...]) -> Iterator[StoredUsage]:
    for task_id, answer_name, judgments, requests, *tokens in connection.execute(_STORED, judge):
        yield StoredUsage(task_id, answer_name, judgments, requests, TokenUsage(*tokens))
