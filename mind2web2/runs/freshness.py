"""Whether an agent's results still hold: each is compared with the files and the judge of now."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from mind2web2.errors import AnswerError, JudgmentStoreError, Mind2Web2Error, UsageError
from mind2web2.judge.caching import REPLAY_ENDPOINT
from mind2web2.judge.store import FILE_NAME
from mind2web2.judge.transfer import latest_served_model
from mind2web2.pages.answer_cache import listing_sha256
from mind2web2.pages.cache import CacheFileSys
from mind2web2.runs.answers import (
    AnswerFile,
    AnswerJob,
    AnswerSetting,
    TaskWork,
    read_answer,
    select_answers,
)
from mind2web2.runs.current_inputs import Present, library_versions, settings_sha256
from mind2web2.runs.dataset_record import dataset_commit
from mind2web2.runs.provenance import JudgeRecord, Provenance
from mind2web2.runs.results import LoadedResult, latest_result, latest_results
from mind2web2.runs.scored_answer import ScoredAnswer
from mind2web2.runs.task_summary import overwritten_results
from mind2web2.scripts.clock import AsOf, answer_moment, reading_at, recorded_moment
from mind2web2.scripts.inputs import InputsNow, ScriptInputs, variable_digests
from mind2web2.utils.files import file_sha256, text_sha256
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.path_config import PathConfig, ScriptFile

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conditions:
    """The settings of a run that decide whether an earlier result still holds.

    Args:
        with_captures: pages that are not stored are captured.
        with_private_network: captures and downloads may visit private addresses.
        as_of: the moment that scripts take for now; ``None`` for the real time.
        variables: the environment variables that scripts get.
        strict: a result does not hold where its script has made mistakes (``script_faults``).
    """

    judge: JudgeRecord
    with_captures: bool
    with_private_network: bool
    as_of: AsOf | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False


def provenance_now(job: AnswerSetting, text: str, conditions: Conditions) -> Provenance:
    """Return what a result of this answer would be made from now, as far as known before the script runs."""
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
    """Return the newest result if it still holds, or why it does not, in one line, if there is one."""
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
        changes = [
            *_present(job, text, conditions).changes_since(made_from, is_edited=False)
        ]
        changes += _obstacles(made_from, conditions)
        changes += _other_hour(made_from, moment_of(job.answer, conditions.as_of))
    if changes:
        log.info(
            "result no longer holds path=%s changed=%s", found.path, "; ".join(changes)
        )
    return "; ".join(changes) or None


def _present(job: AnswerJob, text: str, conditions: Conditions) -> Present:
    now = provenance_now(job, text, conditions)
    moment = moment_of(job.answer, conditions.as_of) or datetime.now(UTC)
    clock = reading_at(moment, is_read=True)
    return Present(
        answer_sha256=now.answer_sha256,
        script=now.script,
        script_sha256=now.script_sha256,
        script_folder=job.script_path.parent,
        judge=now.judge.model_dump(),
        page_sha256=job.task_cache.digest,
        listing_sha256=partial(listing_sha256, job.task_cache),
        inputs=InputsNow(clock, variable_digests(conditions.variables)),
    )


def _obstacles(made_from: Provenance, conditions: Conditions) -> Iterator[str]:
    """Yield why a result does not hold although nothing that it was made from has changed."""
    if made_from.other_pages:
        yield "the script stored pages itself, which cannot be compared"
    yield from made_from.inputs.not_compared
    if (
        conditions.with_captures
        and not made_from.with_captures
        and None in made_from.pages.values()
    ):
        yield "missing pages can be captured now"
    if conditions.with_private_network and made_from.refused_downloads:
        yield "files on private addresses can be downloaded now"
    if (
        conditions.with_private_network
        and conditions.with_captures
        and made_from.refused_pages
    ):
        yield "pages on private addresses can be captured now"


def _other_hour(made_from: Provenance, moment: datetime | None) -> Iterator[str]:
    """Yield that ``--as_of`` names another hour of the same date; another date is a change of the clock."""
    clock = made_from.inputs.clock
    if (
        moment is None
        or clock is None
        or not clock.is_read
        or made_from.inputs.as_of is None
    ):
        return
    was, now = recorded_moment(clock), moment.astimezone()
    if was is not None and was.date() == now.date() and was != now:
        yield f"the script reads the clock: it ran as of {was:%H:%M:%S}, now {now:%H:%M:%S}"


class PresentReader:
    """Reads the present state of an agent's files; each file once.

    Args:
        judge: the fields of ``JudgeRecord`` to compare; by default those of the agent's newest result.
        with_pages: ``False`` leaves pages uncompared, for results that came without them.
    """

    def __init__(
        self,
        paths: PathConfig,
        agent_name: str,
        *,
        judge: JsonObject | None = None,
        with_pages: bool = True,
    ) -> None:
        self._paths = paths
        self._agent_name = agent_name
        self._judge = judge or _newest_fields(paths.eval_results_root, agent_name)
        self._with_pages = with_pages
        self._script = cache(self._read_script)
        self._task_cache = cache(self._open_cache)
        self._page = cache(self._read_page)
        self._served = cache(self._read_served)

    def present(
        self, task_id: str, answer_name: str, made_from: Provenance | None
    ) -> Present:
        """Return what a result of this answer would be made from now."""
        script, script_sha256 = self._script(task_id)
        answer = self._paths.answers_root / self._agent_name / task_id / answer_name
        try:
            answer_sha256 = text_sha256(read_answer(answer))
        except AnswerError as error:
            log.info("answer not compared: %s", error)
            answer_sha256 = None
        return Present(
            answer_sha256=answer_sha256,
            is_answer_there=os.path.lexists(answer),
            script=None if script is None else f"{script.version}/{script.path.name}",
            script_sha256=script_sha256,
            script_folder=None if script is None else script.path.parent,
            judge={} if made_from is None else self._comparable_judge(made_from.judge),
            served_models=frozenset()
            if made_from is None
            else self._served(made_from.judge),
            page_sha256=partial(self._page, task_id) if self._with_pages else None,
            listing_sha256=partial(self._listing, task_id)
            if self._with_pages
            else None,
            inputs=InputsNow(
                None, {} if made_from is None else _variables_now(made_from.inputs)
            ),
        )

    def _comparable_judge(self, was: JudgeRecord) -> JsonObject:
        endpoints = (was.endpoint, str({"endpoint": None, **self._judge}["endpoint"]))
        # A replay takes judgments of any server; a caller's own client has another name in each process.
        is_unknown = REPLAY_ENDPOINT in endpoints or all(
            name.startswith("client ") for name in endpoints
        )
        return {
            name: value
            for name, value in self._judge.items()
            if name not in ("endpoint", "first_endpoint") or not is_unknown
        }

    def _read_script(self, task_id: str) -> tuple[ScriptFile | None, str | None]:
        try:
            script = self._paths.find_script(task_id)
            return script, None if script is None else file_sha256(script.path)
        except (UsageError, OSError) as error:
            log.info("script not compared: %s", error)
            return None, None

    def _open_cache(self, task_id: str) -> CacheFileSys | None:
        try:
            return CacheFileSys(self._paths.cache_root / self._agent_name / task_id)
        except Mind2Web2Error as error:
            log.warning("pages count as not cached: %s", error)
            return None

    def _listing(self, task_id: str) -> str | None:
        stored = self._task_cache(task_id)
        return None if stored is None else listing_sha256(stored)

    def _read_page(self, task_id: str, url: str) -> str | None:
        stored = self._task_cache(task_id)
        try:
            return None if stored is None else stored.digest(url)
        except Mind2Web2Error as error:
            log.warning("page counts as not cached: %s", error)
            return None

    def _read_served(self, judge: JudgeRecord) -> frozenset[str]:
        store = self._paths.eval_results_root / self._agent_name / FILE_NAME
        try:
            latest = [latest_served_model(store, each) for each in judge.identities()]
        except JudgmentStoreError as error:
            log.warning("judge not compared: %s", error)
            return frozenset()
        return frozenset(model for model in latest if model is not None)


def _variables_now(inputs: ScriptInputs) -> dict[str, str]:
    # A variable that is not set here says nothing about the next run.
    present = {
        name: os.environ[name] for name in inputs.variables if name in os.environ
    }
    return {**inputs.variables, **variable_digests(present)}


def _newest_fields(eval_results_root: Path, agent_name: str) -> JsonObject:
    newest = newest_judge(eval_results_root, agent_name)
    return {} if newest is None else newest.model_dump(exclude={"provider"})


def newest_judge(eval_results_root: Path, agent_name: str) -> JudgeRecord | None:
    """Return the judge of the newest result, if one is recorded."""
    results = [found for _, _, found in latest_results(eval_results_root, agent_name)]
    # The stamp leads the name.
    for found in sorted(results, key=lambda found: found.path.name, reverse=True):
        if (made_from := found.content.provenance) is not None:
            return made_from.judge
    return None


def changed_scripts(
    eval_results_root: Path, agent_name: str, work: Iterable[TaskWork]
) -> list[str]:
    """Return the tasks whose eval script differs from the one that made their newest result."""
    changed = []
    for task in work:
        folders = (eval_results_root / agent_name / task.task_id).glob("*/results")
        results = [
            found for folder in folders if (found := latest_result(folder)) is not None
        ]
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
        unevaluated: answers without any record, by ``task/answer``.
        removed: tasks with results that have no answers any more.
        unchecked: comparisons that were not possible, one line each.
    """

    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unevaluated: tuple[str, ...] = ()
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
        return ResultsNow(
            unchecked=(f"whether results are stale: no folder {scripts}",)
        )
    known = {(answer.task_id, answer.answer_name): answer for answer in answers}
    there = [(task_id, file.name) for task_id in selected for file in selected[task_id]]
    if task_ids is not None:
        known = {place: known[place] for place in known if place[0] in task_ids}
        there = [place for place in there if place[0] in task_ids]
    scored = {place: one for place, one in known.items() if one.score is not None}
    # A run in which the agent failed has a score with a reason, and neither an answer nor a result.
    judged = [place for place, answer in scored.items() if not answer.reason]
    failed_tasks = {task_id for (task_id, _), one in scored.items() if one.reason}
    pages = paths.cache_root / agent_name
    unchecked = f"whether pages have changed: no folder {pages}"
    tasks = dict.fromkeys(task_id for task_id, _ in known)
    kept = selected.keys() | failed_tasks
    return ResultsNow(
        stale=_stale(paths, agent_name, set(judged)),
        unevaluated=tuple("/".join(place) for place in there if place not in known),
        removed=tuple(task_id for task_id in tasks if task_id not in kept),
        unchecked=() if pages.is_dir() else (unchecked,),
    )


def _stale(
    paths: PathConfig, agent_name: str, judged: Collection[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Return what has changed since the newest results of answers were made, by task and answer."""
    has_pages = (paths.cache_root / agent_name).is_dir()
    reader = PresentReader(paths, agent_name, with_pages=has_pages)
    stale = {}
    for task_id, name, found in latest_results(paths.eval_results_root, agent_name):
        if (task_id, name) not in judged:
            continue
        result = found.content
        present = reader.present(task_id, name, result.provenance)
        changes = present.changes_since(result.provenance, is_edited=result.is_edited)
        if changes:
            stale[f"{task_id}/{name}"] = changes
    return stale
