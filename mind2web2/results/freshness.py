"""Find results that no longer hold, by the files and the judge of now.

A result holds while the checksums of what it was made from are the same and its script uses nothing
else (``scripts.sources``). Any other script is run again, from stored replies.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from mind2web2 import __version__
from mind2web2.errors import AnswerError, Mind2Web2Error, UsageError
from mind2web2.judge.spec import JudgeRecord
from mind2web2.pages.answer_cache import listing_sha256
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import (
    AnswerFile,
    AnswerJob,
    AnswerSetting,
    TaskWork,
    read_answer,
    select_answers,
)
from mind2web2.results.dataset_record import dataset_commit
from mind2web2.results.provenance import Provenance
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.settings_digest import library_versions, settings_sha256
from mind2web2.results.stored_results import (
    LoadedResult,
    latest_result,
    latest_results,
    newest_result_name,
)
from mind2web2.results.task_summary import overwritten_results
from mind2web2.scripts.clock import AsOf, answer_moment
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.scripts.sources import script_sources
from mind2web2.utils.files import file_sha256, text_sha256
from mind2web2.utils.names import name_list
from mind2web2.utils.path_config import PathConfig, ScriptFile
from mind2web2.utils.program import program

NO_PROVENANCE = "it does not say what it was made from"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conditions:
    """The settings of a run that decide whether an earlier result still holds.

    Args:
        with_captures: pages that are not stored are captured.
        with_private_network: captures and downloads may visit private addresses.
        strict: a result does not hold where its script has made mistakes (``script_faults``).
    """

    judge: JudgeRecord
    with_captures: bool
    with_private_network: bool
    strict: bool = False


def provenance_now(job: AnswerSetting, text: str, conditions: Conditions) -> Provenance:
    """Return the provenance of a result now, as far as known before the script runs."""
    return Provenance(
        answer_sha256=text_sha256(text),
        script=f"{job.script_version}/{job.script_path.name}",
        script_sha256=file_sha256(job.script_path),
        dataset_commit=dataset_commit(job.script_path),
        settings_sha256=settings_sha256(),
        judge=conditions.judge,
        pages={},
        with_captures=conditions.with_captures,
        with_private_network=conditions.with_private_network,
        versions=library_versions(),
        inputs=ScriptInputs(modules=script_sources(job.script_path).helpers),
    )


def moment_of(answer: AnswerFile, as_of: AsOf | None) -> datetime | None:
    """Return the moment that ``--as_of`` means for an answer.

    Raises:
        AnswerError: the answer does not tell when it was made.
    """
    if as_of == "answer":
        return answer_moment(answer.path, answer.created)
    return as_of


def held_result(
    job: AnswerJob, text: str, conditions: Conditions
) -> tuple[LoadedResult | None, str | None]:
    """Return the newest result if it still holds, else the reason in one line."""
    found = latest_result(job.folder / "results")
    if found is None:
        return None, None
    overwritten = overwritten_results(job.folder.parent)
    if overwritten.get(job.answer.name) == found.path.name:
        return None, "an unfinished --overwrite may have replaced its judgments"
    changed = why_judged_again(found, job, text, conditions)
    if changed is not None:
        return None, changed
    return found, None


def why_judged_again(
    found: LoadedResult, job: AnswerJob, text: str, conditions: Conditions
) -> str | None:
    """Return why a result of this answer does not hold, in one line; ``None`` if it does."""
    result = found.content
    made_from = result.provenance
    if made_from is None or result.final_score is None:
        changes = ["the earlier result does not say what it was made from"]
    elif result.is_edited or not result.has_checksum:
        changes = ["the result file was changed after it was written"]
    elif result.doubts:
        changes = ["the earlier result is in doubt"]
    elif conditions.strict and result.faults_of_script():
        changes = ["its script has made mistakes (--strict)"]
    else:
        script = ScriptFile(job.script_path, job.script_version)
        changes = [
            *changes_since(made_from, text_sha256(text), script, job.task_cache),
            *_judge_changes(made_from.judge, conditions.judge),
            *_obstacles(made_from, conditions),
        ] or [*_unknown_inputs(made_from, job.script_path)]
    if changes:
        log.info("result no longer holds path=%s changed=%s", found.path, "; ".join(changes))
    return "; ".join(changes) or None


def changes_since(
    made_from: Provenance,
    answer_sha256: str | None,
    script: ScriptFile | None,
    pages: CacheFileSys | None,
) -> Iterator[str]:
    """Yield what has changed since a result was made, one phrase each; reads files.

    Args:
        answer_sha256: of the present text; ``None`` for an answer that is missing or cannot be
            read.
        script: of now; ``None`` where no script exists for the task.
        pages: ``None`` leaves them uncompared.
    """
    if answer_sha256 is None:
        yield "answer missing or unreadable"
    elif answer_sha256 != made_from.answer_sha256:
        yield "answer changed"
    yield from _script_changes(made_from, script)
    if made_from.settings_sha256 != settings_sha256():
        version = made_from.package_version
        is_other = version and version != __version__
        of_version = f" than version {version}" if is_other else ""
        yield f"this version asks the judge differently{of_version}"
    if pages is not None:
        yield from _page_changes(made_from, pages)


def _script_changes(made_from: Provenance, script: ScriptFile | None) -> Iterator[str]:
    if script is None:
        yield f"script {made_from.script} missing, and no other script judges the task"
        return
    name = f"{script.version}/{script.path.name}"
    if file_sha256(script.path) != made_from.script_sha256:
        is_same = name == made_from.script
        other = "changed" if is_same else f"replaced by {name}"
        yield f"script {made_from.script} {other}"
        return
    was, now = made_from.inputs.modules, script_sources(script.path).helpers
    changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    if changed:
        yield f"helper files changed: {name_list(changed)}"


def _page_changes(made_from: Provenance, pages: CacheFileSys) -> Iterator[str]:
    changes: dict[str, list[str]] = defaultdict(list)
    for url, was in made_from.pages.items():
        now = pages.digest(url)
        if now is None and was is not None:
            changes["no longer cached"].append(url)
        elif now != was:
            changes["changed" if was else "cached since"].append(url)
    for change, urls in changes.items():
        noun = "pages" if len(urls) > 1 else "page"
        yield f"{noun} {change}: {name_list(urls)}"
    listed = made_from.listing_sha256
    if listed is not None and listing_sha256(pages) != listed:
        yield "the list of cached pages changed"


def _judge_changes(was: JudgeRecord, now: JudgeRecord) -> Iterator[str]:
    before, present = was.model_dump(), now.model_dump()
    changes = [
        f"{name} {_describe(before[name])}, now {_describe(value)}"
        for name, value in present.items()
        if before[name] != value
    ]
    if changes:
        yield f"judge changed: {', '.join(changes)}"


def _describe(parameter: object) -> object:
    return "not set" if parameter is None else parameter


def _obstacles(made_from: Provenance, conditions: Conditions) -> Iterator[str]:
    """Yield why a result does not hold although nothing that it was made from has changed."""
    if made_from.other_pages:
        yield "the script stored pages itself, which cannot be compared"
    if (
        conditions.with_captures
        and not made_from.with_captures
        and None in made_from.pages.values()
    ):
        yield "missing pages can be captured now"
    if conditions.with_private_network and made_from.refused_downloads:
        yield "files on private addresses can be downloaded now"
    if conditions.with_private_network and conditions.with_captures and made_from.refused_pages:
        yield "pages on private addresses can be captured now"


def _unknown_inputs(made_from: Provenance, script_path: Path) -> Iterator[str]:
    """Yield why only running the script again tells whether a result holds."""
    clock = made_from.inputs.clock
    if reason := script_sources(script_path).why_run_again:
        yield reason
    elif clock is not None and clock.is_read:
        yield "its script reads the clock and was run again"


class FilesNow:
    """An agent's answers, scripts and pages as they are now.

    Scripts and pages are found once a task.

    Args:
        with_pages: ``False`` leaves pages uncompared, for results that came without them.
    """

    def __init__(self, paths: PathConfig, agent_name: str, *, with_pages: bool = True) -> None:
        self._paths = paths
        self._agent_name = agent_name
        self._with_pages = with_pages
        self.script = cache(self._find_script)
        self._pages = cache(self._open_pages)

    def changes_since(self, task_id: str, answer_name: str, made_from: Provenance) -> list[str]:
        """Return what has changed since a result of this answer was made, one phrase each."""
        answer = self._paths.answers_root / self._agent_name / task_id / answer_name
        try:
            answer_sha256 = text_sha256(read_answer(answer))
        except AnswerError as error:
            log.info("answer not compared: %s", error)
            answer_sha256 = None
        pages = self._pages(task_id) if self._with_pages else None
        script = self.script(task_id)
        return list(changes_since(made_from, answer_sha256, script, pages))

    def is_run_again(self, task_id: str) -> bool:
        """Tell whether only running a task's script again tells whether its results hold."""
        script = self.script(task_id)
        return script is not None and bool(script_sources(script.path).impure)

    def _find_script(self, task_id: str) -> ScriptFile | None:
        try:
            script = self._paths.find_script(task_id)
        except UsageError as error:
            log.info("script not compared: %s", error)
            return None
        is_readable = script is not None and os.access(script.path, os.R_OK)
        return script if is_readable else None

    def _open_pages(self, task_id: str) -> CacheFileSys | None:
        try:
            return CacheFileSys(self._paths.cache_root / self._agent_name / task_id)
        except Mind2Web2Error as error:
            log.warning("pages are not compared: %s", error)
            return None


def newest_judge(eval_results_root: Path, agent_name: str) -> JudgeRecord | None:
    """Return the judge of the newest result, if one is recorded."""
    folders = (eval_results_root / agent_name).glob("*/*/results")
    names_and_folders = [(newest_result_name(folder) or "", folder) for folder in folders]
    # The stamp leads the name.
    for _, folder in sorted(names_and_folders, key=lambda each: each[0], reverse=True):
        found = latest_result(folder)
        if found is not None and found.content.provenance is not None:
            return found.content.provenance.judge
    return None


def changed_scripts(
    eval_results_root: Path, agent_name: str, work: Iterable[TaskWork]
) -> list[str]:
    """Return the tasks whose eval script differs from the one that made their newest result."""
    changed = []
    for task in work:
        folders = (eval_results_root / agent_name / task.task_id).glob("*/results")
        results = [found for folder in folders if (found := latest_result(folder)) is not None]
        newest = max(results, key=lambda found: found.path.name, default=None)
        made_from = None if newest is None else newest.content.provenance
        if made_from is not None and task.script_path is not None:
            with suppress(OSError):
                if file_sha256(task.script_path) != made_from.script_sha256:
                    changed.append(task.task_id)
    return changed


@dataclass(frozen=True, slots=True)
class ResultsNow:
    """The present state of an agent's answers and results.

    Args:
        stale: the changes since results were made that are counted, by ``task/answer``.
        removed: tasks with results that have no answers any more.
        unchecked: comparisons that were not possible, one line each.
    """

    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def results_now(
    paths: PathConfig,
    agent_name: str,
    answers: Iterable[ScoredAnswer],
    task_ids: Collection[str] | None = None,
) -> ResultsNow:
    """Compare an agent's results with the present answers, scripts and pages; reads files.

    Results are often exchanged without these folders: a missing folder makes no result stale.

    Args:
        answers: all answers with a record.
    """
    try:
        selected = select_answers(paths, agent_name)
    except UsageError as error:
        return ResultsNow(unchecked=(f"whether results are stale: {error}",))
    scripts = paths.eval_scripts_root
    if not scripts.is_dir():
        return ResultsNow(unchecked=(f"whether results are stale: no folder {scripts}",))
    known = {(answer.task_id, answer.answer_name): answer for answer in answers}
    if task_ids is not None:
        known = {place: known[place] for place in known if place[0] in task_ids}
    scored = {place: one for place, one in known.items() if one.score is not None}
    # A run in which the agent failed has a score with a reason, and neither an answer nor a result.
    judged = [place for place, answer in scored.items() if not answer.reason]
    failed_tasks = {task_id for (task_id, _), one in scored.items() if one.reason}
    pages = paths.cache_root / agent_name
    unchecked = f"whether pages have changed: no folder {pages}"
    files = FilesNow(paths, agent_name, with_pages=pages.is_dir())
    stale = _stale(paths, agent_name, set(judged), files)
    tasks = dict.fromkeys(task_id for task_id, _ in known)
    judged_tasks = dict.fromkeys(task_id for task_id, _ in judged)
    unknown = [task_id for task_id in judged_tasks if files.is_run_again(task_id)]
    current_tasks = selected.keys() | failed_tasks
    return ResultsNow(
        stale=stale,
        removed=tuple(task_id for task_id in tasks if task_id not in current_tasks),
        unchecked=(*([] if pages.is_dir() else [unchecked]), *_run_again(unknown)),
    )


def _stale(
    paths: PathConfig,
    agent_name: str,
    judged: Collection[tuple[str, str]],
    files: FilesNow,
) -> dict[str, tuple[str, ...]]:
    """Return what has changed since the newest results of answers were made, by task and answer."""
    stale = {}
    for task_id, name, found in latest_results(paths.eval_results_root, agent_name):
        if (task_id, name) not in judged:
            continue
        made_from = found.content.provenance
        if made_from is None:
            changes = [NO_PROVENANCE]
        else:
            changes = files.changes_since(task_id, name, made_from)
        if changes:
            stale[f"{task_id}/{name}"] = tuple(changes)
    return stale


def _run_again(task_ids: Collection[str]) -> Iterator[str]:
    if task_ids:
        yield (
            "other inputs of scripts that read more than answer and pages "
            f"({name_list(task_ids)}): "
            f"{program()} evaluate runs them again from stored replies"
        )
