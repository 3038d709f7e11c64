"""Lists results as overwritten while a run with ``--overwrite`` lasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mind2web2.results.stored_results import newest_result_name, writing_in
from mind2web2.results.task_summary import (
    SUMMARY_NAME,
    UNSCORED,
    UNSCORED_NAME,
    TaskEntry,
    overwritten_results,
    read_entries,
    write_entries,
)
from mind2web2.utils.names import natural_key

_REASON = (
    "being judged again (--overwrite); if that run was stopped, evaluate without --overwrite "
    "judges it by "
    "stored replies"
)


def list_overwritten(folder: Path, answer_names: Iterable[str]) -> list[TaskEntry]:
    """List the newest results of answers as overwritten.

    Args:
        folder: of the task.

    Returns:
        the task's entries before, for ``restore_entries``; none where all were listed.

    Raises:
        ResultWriteError: the files cannot be written.
    """
    names = list(answer_names)
    if _newest_results(folder, names).items() <= overwritten_results(folder).items():
        return []
    with writing_in(folder):
        before = [
            *read_entries(folder / SUMMARY_NAME),
            *read_entries(folder / UNSCORED_NAME),
        ]
        newest = _newest_results(folder, names)
        others = [entry for entry in before if entry.md_name not in newest]
        listed = [_entry(name, result) for name, result in newest.items()]
        entries = sorted([*others, *listed], key=lambda entry: natural_key(entry.md_name))
        write_entries(folder, entries)
    return before


def restore_entries(folder: Path, before: Sequence[TaskEntry]) -> None:
    """Write a task's entries as they were before ``list_overwritten``."""
    with writing_in(folder):
        write_entries(folder, before)


def _newest_results(folder: Path, answer_names: Iterable[str]) -> dict[str, str]:
    found = {
        name: newest_result_name(folder / name.removesuffix(".md") / "results")
        for name in answer_names
    }
    return {name: newest for name, newest in found.items() if newest is not None}


def _entry(answer_name: str, earlier_result: str) -> TaskEntry:
    return TaskEntry(
        answer_name=answer_name,
        score=None,
        status=UNSCORED,
        success=False,
        reason=_REASON,
        earlier_result=earlier_result,
        is_overwritten=True,
    )
