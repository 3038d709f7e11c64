"""What has changed since a result was made: its answer, script, pages or judge, or how judges are asked."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from mind2web2.errors import AnswerError, JudgmentStoreError, Mind2Web2Error, UsageError
from mind2web2.judge.caching import REPLAY_ENDPOINT
from mind2web2.judge.store import FILE_NAME, JudgeIdentity
from mind2web2.pages.answer_view import listing_sha256
from mind2web2.pages.cache import CacheFileSys
from mind2web2.runs.answers import TaskWork, read_answer, select_answers
from mind2web2.runs.provenance import JudgeRecord, Provenance, provenance_in, settings_sha256
from mind2web2.runs.results import is_seal_broken, latest_result, latest_results
from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.scripts.inputs import InputsNow, ScriptInputs, changed_inputs, variable_digests
from mind2web2.utils.files import file_sha256, text_sha256
from mind2web2.utils.names import name_list
from mind2web2.utils.path_config import PathConfig

log = logging.getLogger(__name__)

NO_PROVENANCE = "it does not say what it was made from"
CHANGED = "it was changed after it was written: its content is not what its own digest says"


@dataclass(frozen=True, slots=True)
class Present:
    """What a result of an answer would be made from now.

    Args:
        answer_sha256: ``None`` where the answer is gone or cannot be read.
        is_answer_there: something stands in the answer's place, readable or not.
        script: version folder and file name; ``None`` where no script judges the task.
        pages: digest of each page that the result rests on, ``None`` where nothing is stored; ``None`` as a
            whole leaves pages uncompared.
        judge: the fields of ``JudgeRecord`` that count, with their values.
        served_model: what the judge was last served as; ``None`` where that is not known.
        input_changes: what has changed of the things that the script read; its clock aside, which a replay
            sets.
    """

    answer_sha256: str | None
    script: str | None
    script_sha256: str | None
    settings_sha256: str
    is_answer_there: bool = True
    pages: Mapping[str, str | None] | None = None
    listing_sha256: str | None = None
    judge: Mapping[str, Any] | None = None
    served_model: str | None = None
    input_changes: tuple[str, ...] = ()


def stale_reasons(result: Mapping[str, Any], present: Present) -> tuple[str, ...]:
    """Return what has changed since a result was made, one line each; nothing where it still holds.

    Args:
        result: the content of its file.
    """
    made_from = provenance_in(result)
    changed = (CHANGED,) if is_seal_broken(result) else ()
    return (*changed, *((NO_PROVENANCE,) if made_from is None else _changes(made_from, present)))


def _changes(made_from: Provenance, present: Present) -> Iterator[str]:
    if present.answer_sha256 is None:
        yield f"answer: it {'cannot be read any more' if present.is_answer_there else 'is gone'}"
    elif present.answer_sha256 != made_from.answer_sha256:
        yield "answer: its text has changed"
    if present.script_sha256 is None:
        yield f"script: {made_from.script} is gone, and no other judges the task"
    elif present.script_sha256 != made_from.script_sha256:
        is_same = present.script == made_from.script
        other = f"judged by {made_from.script}, which is {present.script} now"
        yield f"script: {f'{made_from.script} has changed' if is_same else other}"
    if present.settings_sha256 != made_from.settings_sha256:
        version = made_from.versions.get("mind2web2")
        of_version = f" (it was made by version {version})" if version else ""
        yield f"settings: this version asks judges in another way{of_version}"
    yield from _page_changes(made_from, present)
    yield from present.input_changes
    if judge := _judge_changes(made_from, present):
        yield f"judge: {', '.join(judge)}"
        return
    served = {served.model for served in made_from.served if served.model is not None}
    if served and present.served_model not in (None, *served):
        yield f"judge: served as {name_list(served)}, and as {present.served_model} since"


def _page_changes(made_from: Provenance, present: Present) -> Iterator[str]:
    if present.pages is None:
        return
    changes: dict[str, list[str]] = {"changed": [], "no longer cached": [], "cached since": []}
    for url, was in made_from.pages.items():
        now = present.pages.get(url)
        if now != was:
            changes["no longer cached" if now is None else "changed" if was else "cached since"].append(url)
    yield from (f"pages {how}: {name_list(urls)}" for how, urls in changes.items() if urls)
    if made_from.listing_sha256 is not None and made_from.listing_sha256 != present.listing_sha256:
        yield "pages: the script listed the cached ones, which are others now"


def _judge_changes(made_from: Provenance, present: Present) -> list[str]:
    was, now = made_from.judge.model_dump(), dict(present.judge or {})
    endpoints = (was["endpoint"], str(now.get("endpoint")))
    # A replay answers for whichever server the judgments are from; a client of the caller's own has another
    # name in each process.
    if REPLAY_ENDPOINT in endpoints or all(endpoint.startswith("client ") for endpoint in endpoints):
        now.pop("endpoint", None)
    return [f"{name} {was[name]}, now {value}" for name, value in now.items() if was[name] != value]


def changed_scripts(eval_results_root: Path, agent_name: str, work: Iterable[TaskWork]) -> list[str]:
    """Return the tasks whose eval script is another than the one that made their newest result."""
    changed = []
    for task in work:
        folders = (eval_results_root / agent_name / task.task_id).glob("*/results")
        results = [found for folder in folders if (found := latest_result(folder)) is not None]
        # The stamp leads the name.
        newest = max(results, key=lambda found: found.path.name, default=None)
        made_from = None if newest is None else provenance_in(newest.content)
        if made_from is not None and task.script_path is not None:
            with suppress(OSError):
                if file_sha256(task.script_path) != made_from.script_sha256:
                    changed.append(task.task_id)
    return changed


class PresentReader:
    """Reads what results of one agent would be made from now; each file once.

    Args:
        paths: where everything is.
        judge: the fields of ``JudgeRecord`` that count, with their values.
        with_pages: ``False`` leaves pages uncompared: they are many files.
    """

    def __init__(
        self,
        paths: PathConfig,
        agent_name: str,
        *,
        judge: Mapping[str, Any] | None = None,
        with_pages: bool = True,
    ) -> None:
        self._paths = paths
        self._agent_name = agent_name
        self._judge = judge
        self._with_pages = with_pages
        self._script = cache(self._read_script)
        self._task_cache = cache(self._open_cache)
        self._page = cache(self._read_page)
        self._served = cache(self._read_served)

    def present(self, task_id: str, answer_name: str, result: Mapping[str, Any]) -> Present:
        """Return what a result of this answer would be made from now; reads files."""
        answer_path = self._paths.answers_root / self._agent_name / task_id / answer_name
        script, script_sha256 = self._script(task_id)
        present = Present(
            answer_sha256=_answer_sha256(answer_path),
            script=script,
            script_sha256=script_sha256,
            settings_sha256=settings_sha256(),
            is_answer_there=os.path.lexists(answer_path),
            judge=self._judge,
        )
        made_from = provenance_in(result)
        if made_from is None:
            return present
        stored = None if made_from.listing_sha256 is None else self._task_cache(task_id)
        return replace(
            present,
            pages={url: self._page(task_id, url) for url in made_from.pages} if self._with_pages else None,
            listing_sha256=None if stored is None else listing_sha256(stored),
            served_model=self._served(made_from.judge),
            input_changes=self._input_changes(task_id, made_from.inputs),
        )

    def _input_changes(self, task_id: str, inputs: ScriptInputs) -> tuple[str, ...]:
        try:
            script = self._paths.find_script(task_id)
        except UsageError:
            script = None
        if script is None:
            return ()
        variables = {name: os.environ[name] for name in inputs.variables if name in os.environ}
        now = variable_digests(variables) | {
            name: was for name, was in inputs.variables.items() if name not in variables
        }
        return tuple(changed_inputs(inputs, script.path.parent, InputsNow(inputs.clock, now)))

    def _read_script(self, task_id: str) -> tuple[str | None, str | None]:
        try:
            script = self._paths.find_script(task_id)
            if script is None:
                return None, None
            return f"{script.version}/{script.path.name}", file_sha256(script.path)
        except (UsageError, OSError) as error:
            log.info("script not compared: %s", error)
            return None, None

    def _open_cache(self, task_id: str) -> CacheFileSys | None:
        try:
            return CacheFileSys(self._paths.cache_root / self._agent_name / task_id)
        except Mind2Web2Error as error:
            log.warning("pages count as not cached: %s", error)
            return None

    def _read_page(self, task_id: str, url: str) -> str | None:
        stored = self._task_cache(task_id)
        try:
            return None if stored is None else stored.digest(url)
        except Mind2Web2Error as error:
            log.warning("page counts as not cached: %s", error)
            return None

    def _read_served(self, judge: JudgeRecord) -> str | None:
        from mind2web2.judge.transfer import latest_served_model

        store = self._paths.eval_results_root / self._agent_name / FILE_NAME
        identity = JudgeIdentity.model_validate(judge.model_dump(exclude={"provider"}))
        try:
            return latest_served_model(store, identity)
        except JudgmentStoreError as error:
            log.warning("judge not compared: %s", error)
            return None


def _answer_sha256(path: Path) -> str | None:
    try:
        return text_sha256(read_answer(path))
    except AnswerError as error:
        log.info("answer not compared: %s", error)
        return None


def stale_results(
    paths: PathConfig,
    agent_name: str,
    *,
    judge: Mapping[str, Any] | None = None,
    with_pages: bool = True,
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return why results of an agent are stale, by task and answer name; only those that are. Reads files.

    Args:
        judge: the fields of ``JudgeRecord`` that count, with their values; by default those of the agent's
            newest result.
        with_pages: ``False`` leaves pages uncompared: they are many files.
    """
    judge = newest_judge(paths.eval_results_root, agent_name) if judge is None else judge
    reader = PresentReader(paths, agent_name, judge=judge, with_pages=with_pages)
    stale: dict[tuple[str, str], tuple[str, ...]] = {}
    for task_id, answer_name, found in latest_results(paths.eval_results_root, agent_name):
        present = reader.present(task_id, answer_name, found.content)
        if reasons := stale_reasons(found.content, present):
            stale[task_id, answer_name] = reasons
    return stale


def newest_judge(eval_results_root: Path, agent_name: str) -> dict[str, Any] | None:
    """Return who judged last, as fields of ``JudgeRecord``; ``None`` where no result says who did."""
    judges = {
        # The stamp leads the name.
        found.path.name: made_from.judge
        for _, _, found in latest_results(eval_results_root, agent_name)
        if (made_from := provenance_in(found.content)) is not None
    }
    return judges[max(judges)].model_dump(exclude={"provider"}) if judges else None


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
