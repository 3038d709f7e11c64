"""Checks an agent's results: each script is run again from stored judgments, in memory.

Then the two rubric trees are compared leaf by leaf.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.judge.spec import replaying
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import copied_store, open_for_replay
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import (
    answer_file,
    answer_paths,
    failed_runs,
)
from mind2web2.results.freshness import CHANGED, holds_now
from mind2web2.results.known_answers import task_answers
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import answer_dir, latest_result, newest_result_name
from mind2web2.runs.again import ScriptRuns
from mind2web2.runs.session import replaying_judge
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import first_few

Kind = Literal["wrong", "stale", "missing"]
# From the gravest on.
KINDS: tuple[Kind, ...] = ("wrong", "stale", "missing")
_MAX_NAMED = 5
_AT_ONCE = 9

log = logging.getLogger(__name__)


class Finding(NamedTuple):
    """Something wrong, stale or missing."""

    kind: Kind
    text: str


@dataclass
class Check:
    """The findings about an answer.

    Args:
        path: of the newest result, where one can be read.
        score: of that result; 0 for a run in which the agent failed.
        score_again: the score of the script that was run again; ``None`` where it was not.
        judgments: the file that it was replayed from, if it was.
    """

    task_id: str
    answer_name: str
    path: Path | None = None
    score: float | None = None
    score_again: float | None = None
    judgments: Path | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def state(self) -> str:
        """Return the gravest kind of its findings, or ``ok``."""
        kinds = {finding.kind for finding in self.findings}
        return next((kind for kind in KINDS if kind in kinds), "ok")

    def add(self, kind: Kind, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text))


async def check_results(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str], judgments: Path | None
) -> list[Check]:
    """Check the results of these tasks; only a temporary folder is written.

    Args:
        judgments: the file of judgments; ``None`` for that from which each result was made.

    Raises:
        JudgmentStoreError: a file of judgments is damaged.
    """
    places = asyncio.Semaphore(_AT_ONCE)
    with tempfile.TemporaryDirectory(prefix="mind2web2-verify-") as folder:
        replay = _Replay(paths, agent_name, judgments, Path(folder))

        async def checked(task_id: str, name: str, reason: str | None) -> Check:
            # Before its result is read: there may be thousands.
            async with places:
                return await replay.check(task_id, name, reason)

        try:
            return await all_or_first_error(
                checked(task_id, name, reason)
                for task_id in task_ids
                for name, reason in _answer_names(paths, agent_name, task_id)
            )
        finally:
            replay.close()


def _answer_names(
    paths: PathConfig, agent_name: str, task_id: str
) -> Iterator[tuple[str, str | None]]:
    """Yield the names of the answers to a task, and why those without a score have none."""
    reasons = {
        answer.answer_name: answer.reason
        for answer in task_answers(paths.eval_results_root, agent_name, task_id)
    }
    folders = (paths.eval_results_root / agent_name / task_id).glob("*/results")
    there = {path.name for path in answer_paths(paths.answers_root / agent_name / task_id)}
    names = there | reasons.keys() | {f"{folder.parent.name}.md" for folder in folders}
    for name in sorted(names, key=natural_key):
        yield name, reasons.get(name)


class _Replay:
    """Runs the scripts of an agent's answers again."""

    def __init__(
        self, paths: PathConfig, agent_name: str, judgments: Path | None, folder: Path
    ) -> None:
        self._paths = paths
        self._agent_name = agent_name
        self._judgments = judgments
        self._folder = folder
        self._runs = ScriptRuns(folder)
        self._stores: dict[Path, JudgmentStore] = {}

    def close(self) -> None:
        """Close the copies of the judgments."""
        for store in self._stores.values():
            store.close()

    async def check(self, task_id: str, name: str, reason: str | None) -> Check:
        """Check one answer.

        Args:
            reason: why it has no score.
        """
        check = Check(task_id, name)
        root = self._paths.eval_results_root
        failed = failed_runs(answer_paths(self._paths.answers_root / self._agent_name / task_id))
        if name in failed and reason == failed[name]:
            check.score = 0.0
            return check
        folder = answer_dir(root, self._agent_name, task_id, name) / "results"
        stored = latest_result(folder)
        if stored is None:
            is_damaged = newest_result_name(folder) is not None
            text = "its newest result is damaged" if is_damaged else reason or "no result"
            check.add("wrong" if is_damaged else "missing", text)
            return check
        check.path, check.score = stored.path, stored.content.final_score
        if stored.content.is_edited:
            check.add("wrong", "it was changed after it was written")
        elif reason is not None:
            check.add("missing", f"its score does not count: {reason}")
        by_tree = stored.content.other_score_by_tree
        if by_tree is not None:
            text = f"its score is {check.score:g}, but its rubric tree gives {by_tree:g}"
            check.add("wrong", text)
        made_from = stored.content.provenance
        if made_from is None:
            check.add("missing", "it does not say what it was made from")
            return check
        check.judgments = self._replayed_file(made_from)
        holds = holds_now(self._paths, self._agent_name, task_id, name, made_from)
        if not holds:
            check.add("stale", CHANGED)
        try:
            again = await self._run_again(task_id, name, made_from)
        except (Mind2Web2Error, OSError) as error:
            text = " ".join(str(error).split())
            check.add("missing", f"its script cannot be run again: {text}")
            return check
        check.score_again = again.final_score
        differences = list(_differences(stored.content, again))
        if differences:
            named = "; ".join(first_few(differences, _MAX_NAMED))
            pages = self._pages(task_id)
            gone = [url for url, digest in made_from.pages.items() if digest and not pages.has(url)]
            if gone:
                folder = self._paths.cache_root / self._agent_name / task_id
                check.add("missing", f"its pages are gone from {folder}: {name_list(gone)}")
            else:
                check.add("wrong" if holds else "stale", f"run again, its script differs: {named}")
        return check

    async def _run_again(self, task_id: str, name: str, made_from: Provenance) -> ResultFile:
        script = self._paths.find_script(task_id)
        if script is None:
            raise UsageError(f"no script for task {task_id}")
        answer = answer_file(self._paths.answers_root / self._agent_name / task_id / name)
        return await self._runs.result(
            self._agent_name,
            task_id,
            answer,
            script.path,
            self._pages(task_id),
            replaying_judge(
                replaying(made_from.judge, made_from.judge.votes), self._store(made_from)
            ),
            made_from,
        )

    def _pages(self, task_id: str) -> CacheFileSys:
        return self._runs.pages(self._paths.cache_root / self._agent_name / task_id, task_id)

    def _store(self, made_from: Provenance) -> JudgmentStore:
        """Return a copy of the judgments that a result rests on."""
        own = self._paths.eval_results_root / self._agent_name / STORE_NAME
        path = self._replayed_file(made_from) or own
        if path not in self._stores:
            if not path.is_file():
                raise UsageError(f"no judgments at {path} (--judgments names another file)")
            copy = copied_store(path, self._folder / f"{len(self._stores)}.{STORE_NAME}")
            self._stores[path] = open_for_replay(copy)
        return self._stores[path]

    def _replayed_file(self, made_from: Provenance) -> Path | None:
        source = made_from.replayed_from
        return self._judgments or (None if source is None else Path(source.path))


def _differences(stored: ResultFile, again: ResultFile) -> Iterator[str]:
    """Yield how the leaves of a result differ from those of another run."""
    was, now = (
        {leaf.id: f"{leaf.status} ({leaf.score})" for leaf in result.leaves()}
        for result in (stored, again)
    )
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            told = now.get(name, "not there"), was.get(name, "not there")
            yield f"leaf {name!r} is {told[0]} instead of {told[1]}"
    if stored.final_score != again.final_score and was == now:
        yield f"its score is {again.final_score} instead of {stored.final_score}"
