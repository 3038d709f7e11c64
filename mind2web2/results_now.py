"""An agent's results beside its answers, scripts and pages as they are now: what is stale or missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.score_grid import ScoredAnswer
from mind2web2.selection import select_answers
from mind2web2.staleness import stale_results
from mind2web2.utils.path_config import PathConfig


@dataclass(frozen=True, slots=True)
class ResultsNow:
    """What a look at the other folders adds to an agent's metrics.

    Args:
        stale: why results that are counted would be made anew, by ``task/answer``.
        unevaluated: answers that no result is known of, by ``task/answer``.
        removed: tasks with results that have no answers any more.
        unchecked: what could not be looked at, one line each.
    """

    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unevaluated: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """Return it as ``mind2web2 metrics --json`` prints it."""
        return {
            "stale": {name: list(reasons) for name, reasons in self.stale.items()},
            "unevaluated": list(self.unevaluated),
            "unchecked": list(self.unchecked),
            "removed": list(self.removed),
        }


def results_now(
    paths: PathConfig,
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Collection[str] | None = None,
) -> ResultsNow:
    """Hold an agent's results against the folders that they were made from; reads files.

    Results are exchanged without these folders: where there are no answers, no scripts or no pages at all,
    nothing is called stale for that.

    Args:
        answers: all that results are known of.
        task_ids: the tasks that count, all by default.
    """
    try:
        selected = select_answers(paths, agent_name)
    except UsageError as error:
        return ResultsNow(unchecked=(f"whether results are stale: {error}",))
    if not paths.eval_scripts_root.is_dir():
        return ResultsNow(unchecked=(f"whether results are stale: no folder {paths.eval_scripts_root}",))
    there = [(task_id, answer.name) for task_id, found in selected.items() for answer in found]
    known = {(answer.task_id, answer.answer_name): answer.score for answer in answers}
    counted = {place for place in (*there, *known) if task_ids is None or place[0] in task_ids}
    counted_tasks = {task for task, _ in counted}
    pages = paths.cache_root / agent_name
    stale = stale_results(paths, agent_name, with_pages=pages.is_dir())
    return ResultsNow(
        stale={
            "/".join(place): reasons
            for place, reasons in stale.items()
            if place in counted and known.get(place) is not None
        },
        unevaluated=tuple("/".join(place) for place in there if place in counted and place not in known),
        removed=tuple(dict.fromkeys(task for task, _ in known if task in counted_tasks - selected.keys())),
        unchecked=() if pages.is_dir() else (f"whether pages have changed: no folder {pages}",),
    )
