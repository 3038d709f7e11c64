"""The results of one agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mind2web2.results.known_answers import agent_answers, require_results
from mind2web2.results.provenance import Provenance
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.stored_results import (
    LoadedResult,
    answer_dir,
    answer_results_dir,
    latest_result,
    latest_results,
)


@dataclass(frozen=True)
class AgentResults:
    """The results of an agent.

    Args:
        root: of the results of all agents.
    """

    root: Path
    agent: str

    def require(self) -> None:
        """Make sure that a run has left results. Raises UsageError: no run has."""
        require_results(self.root, self.agent)

    def answers(self) -> list[ScoredAnswer]:
        """Return every answer that the result folders know of, with its score or a reason."""
        return agent_answers(self.root, self.agent)

    def latest(self) -> Iterator[tuple[str, str, LoadedResult]]:
        """Yield task id, answer name and newest result of each answer, in natural order."""
        return latest_results(self.root, self.agent)

    def made_from(self) -> Provenance | None:
        """Return what the newest of all results was made from, ``None`` where that is unknown."""
        results = (result for _, _, result in self.latest())
        newest = max(results, key=lambda result: result.path.name, default=None)
        return None if newest is None else newest.content.provenance

    def newest(self, task_id: str, answer_name: str) -> LoadedResult | None:
        """Return the newest result of an answer, ``None`` where there is none."""
        return latest_result(answer_results_dir(self.root, self.agent, task_id, answer_name))

    def folder(self, task_id: str, answer_name: str) -> Path:
        """Return the folder of an answer, which has its text as it was judged."""
        return answer_dir(self.root, self.agent, task_id, answer_name)
