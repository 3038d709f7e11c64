"""The entries of a task's ``summary.json`` and ``unscored.json``, one for each answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.errors import ResultWriteError
from mind2web2.results.scored_answer import NO_RESULT, ScoredAnswer
from mind2web2.rubric.verdicts import is_score, is_success
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.json_text import JsonObject, mappings, read_leniently
from mind2web2.utils.names import is_file_name

log = logging.getLogger(__name__)

SUMMARY_NAME = "summary.json"
# Answers without a score, in a file of their own: other tools expect a number in every entry of a
# summary.
UNSCORED_NAME = "unscored.json"

UNSCORED = "unscored"
REMOVED = "removed"


class TaskEntry(BaseModel):
    """One answer in a task's summary; fields that other tools added are kept.

    Args:
        status: ``success``, ``failed``, ``unscored`` or ``removed``.
        reason: why there is no score; with a score, how the agent's run failed.
        earlier_result: the newest result file where it does not count, so that a later one does.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    answer_name: str
    score: int | float | None
    status: str | None = None
    success: bool = False
    reason: str | None = None
    earlier_result: str | None = None

    @property
    def md_name(self) -> str:
        """Return the name of the answer's file."""
        return f"{self.answer_name.removesuffix('.md')}.md"

    def as_json(self) -> JsonObject:
        """Return the entry as it is written, with the fields that it was made of."""
        return self.model_dump(exclude_unset=True)


def task_summary(answers: Iterable[ScoredAnswer]) -> list[TaskEntry]:
    """Return the entries of a task's answers.

    An answer without a score has the status ``unscored``, as it did not fail, and a ``reason``.
    """
    return [_entry(answer) for answer in answers]


def _entry(answer: ScoredAnswer) -> TaskEntry:
    if answer.score is None:
        return TaskEntry(
            answer_name=answer.answer_name,
            score=None,
            status=UNSCORED,
            success=False,
            reason=answer.reason or NO_RESULT,
        )
    scored = TaskEntry(
        answer_name=answer.answer_name,
        score=answer.score,
        status="success" if answer.score > 0 else "failed",
        success=is_success(answer.score),
    )
    if answer.reason is None:
        return scored
    return scored.model_copy(update={"reason": answer.reason})


def read_entries(path: Path) -> list[TaskEntry]:
    """Return the entries of a summary file; none where there is no file, or a damaged one."""
    try:
        content = json.loads(read_regular_file(path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        log.warning("ignored damaged summary %s: %s", path, error)
        return []
    entries = sound_entries(content)
    if not isinstance(content, list) or len(entries) < len(content):
        log.warning("ignored malformed entries in %s", path)
    return entries


def sound_entries(listed: object) -> list[TaskEntry]:
    """Return the entries that name an answer and have a score from 0 to 1 or none."""
    return [read_leniently(TaskEntry, entry) for entry in mappings(listed) if _is_sound(entry)]


def _is_sound(entry: JsonObject) -> bool:
    if not {"answer_name", "score"} <= entry.keys():
        return False
    score = entry["score"]
    return is_file_name(entry["answer_name"]) and (score is None or is_score(score))


def scored_documents(entries: Iterable[TaskEntry]) -> list[JsonObject]:
    """Return the entries with a score, as they are written."""
    return [entry.as_json() for entry in entries if entry.score is not None]


def write_entries(folder: Path, entries: Sequence[TaskEntry]) -> None:
    """Write a task's two files. Raises ResultWriteError: they cannot be written."""
    scored = scored_documents(entries)
    unscored = [entry.as_json() for entry in entries if entry.score is None]
    write_summary_file(folder / SUMMARY_NAME, scored)
    if unscored:
        write_summary_file(folder / UNSCORED_NAME, unscored)
    else:
        (folder / UNSCORED_NAME).unlink(missing_ok=True)


def write_summary_file(path: Path, content: object) -> None:
    """Write a file that sums up results. Raises ResultWriteError: it cannot be written."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    with ResultWriteError.unable_to(f"write to {path}"):
        # A lone surrogate from a file name becomes its JSON escape.
        write_whole(path, text.encode("utf-8", "backslashreplace"))
