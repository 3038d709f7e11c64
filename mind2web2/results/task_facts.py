"""One file keeps the facts of a task's newest results, so that thousands are read at once."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.results.scored_answer import ScoredAnswer, answer_of_result
from mind2web2.results.stored_results import result_state
from mind2web2.utils.files import read_regular_file, write_whole

FACTS_NAME = ".facts.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """The answer of one result file, which has this time of its last change and this size."""

    changed_ns: int
    size: int
    answer: ScoredAnswer


class _Content(BaseModel):
    version: str = __version__
    results: dict[str, _Known] = {}


@dataclass
class TaskFacts:
    """The newest results of a task. A result that changed since is read again."""

    folder: Path
    _known: dict[str, _Known] = field(default_factory=dict)
    _used: dict[str, _Known] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            content = _Content.model_validate_json(read_regular_file(self.folder / FACTS_NAME))
        except (OSError, ValidationError):
            return
        if content.version == __version__:
            self._known = content.results

    def answer(self, path: Path) -> ScoredAnswer:
        """Return what a result of the task says."""
        name = str(path.relative_to(self.folder))
        _, changed_ns, size = result_state(path)
        known = self._known.get(name)
        if known is None or (known.changed_ns, known.size) != (changed_ns, size):
            known = _Known(changed_ns, size, answer_of_result(path))
        # A result without a score is read each time, so that each command logs the reason.
        if known.answer.score is not None:
            self._used[name] = known
        return known.answer

    def write(self) -> None:
        """Write the file if results changed. Raises ResultWriteError: it cannot be written."""
        if self._used == self._known:
            return
        path = self.folder / FACTS_NAME
        with ResultWriteError.unable_to(f"write to {path}"):
            # Through json: a result may have half a surrogate, which pydantic refuses to write.
            write_whole(path, json.dumps(_Content(results=self._used).model_dump(mode="json")))
