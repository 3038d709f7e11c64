"""Result files: where they are, how they are written, which one counts."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mind2web2.errors import ResultWriteError
from mind2web2.utils.files import write_whole

_STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP_LENGTH = len("YYYYMMDD_HHMMSS")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedResult:
    """A result file and what it holds."""

    path: Path
    content: dict[str, Any]


def answer_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's evaluations (layouts.md)."""
    return eval_results_root / agent_name / task_id / answer_name.removesuffix(".md")


def answer_results_dir(eval_results_root: Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of one answer's result files."""
    return answer_dir(eval_results_root, agent_name, task_id, answer_name) / "results"


def latest_result(folder: Path) -> LoadedResult | None:
    """Return the newest result of a folder, ``None`` where there is none.

    A newest file that is damaged counts as no result, with a warning: an older one may have judged
    another answer or script.
    """
    # The stamp leads the name.
    paths = sorted(folder.glob("*.md.json"), key=lambda path: path.name) if folder.is_dir() else []
    if not paths:
        return None
    try:
        content = json.loads(paths[-1].read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        log.warning("damaged result, counts as none path=%s error=%s", paths[-1], error)
        return None
    if not isinstance(content, dict):
        log.warning("damaged result, counts as none path=%s error=not an object", paths[-1])
        return None
    return LoadedResult(paths[-1], content)


def write_result(folder: Path, answer_name: str, content: dict[str, Any]) -> Path:
    """Write a result under a new stamp, beside the earlier ones, and return its path.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    path = _free_path(folder, answer_name)
    # A judge's half surrogate becomes its JSON escape.
    write_file(path, text.encode("utf-8", "backslashreplace"))
    return path


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file.

    Raises:
        ResultWriteError: it cannot be written; the text names the folder.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise ResultWriteError(f"cannot write to {path.parent}: {error.strerror or error}") from error


def _free_path(folder: Path, answer_name: str) -> Path:
    # The newest stamp counts: it must be this one, after a second evaluation within a second, after a
    # clock was put right, and in the hour that comes twice at the end of summer time.
    earlier = [moment for path in folder.glob("*.md.json") if (moment := _moment_of(path)) is not None]
    moment = max([datetime.now(), *(moment + timedelta(seconds=1) for moment in earlier)])
    return folder / f"{moment.strftime(_STAMP_FORMAT)}_{answer_name}.json"


def _moment_of(path: Path) -> datetime | None:
    try:
        return datetime.strptime(path.name[:_STAMP_LENGTH], _STAMP_FORMAT)
    except ValueError:
        return None
