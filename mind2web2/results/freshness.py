"""One digest over all that a result was made from tells whether it holds.

The digest covers the files of the script's own folder, the answer, its stored pages, the judge with
its votes, the prompts and this package's version. If it differs, ``evaluate`` runs the script again
from stored judgments. What a script reads elsewhere is its author's affair.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG

from mind2web2 import __version__
from mind2web2.errors import AnswerError, Mind2Web2Error, UsageError
from mind2web2.judge.record import JudgeRecord
from mind2web2.pages.cache import CacheFileSys, listing_sha256
from mind2web2.results.answers import (
    AnswerFile,
    AnswerJob,
    answer_file,
    read_answer,
    select_answers,
)
from mind2web2.results.provenance import Provenance
from mind2web2.results.scored_answer import ScoredAnswer, scored_by_judge
from mind2web2.results.stored_results import LoadedResult, latest_results
from mind2web2.utils.files import text_sha256
from mind2web2.utils.moments import AsOf, answer_moment
from mind2web2.utils.path_config import PathConfig

CHANGED = "its script, answer, pages, judge or this toolkit has changed"

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("prompts", "verification", "rubric", "judge", "pages")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conditions:
    """The settings of a run that decide whether an earlier result still holds.

    Args:
        as_of: the value of ``--as_of``.
        with_captures: pages that are not stored are captured.
        with_private_network: captures and downloads may visit private addresses.
    """

    judge: JudgeRecord
    as_of: AsOf | None
    with_captures: bool
    with_private_network: bool

    @property
    def stated_moment(self) -> str | None:
        """Return ``as_of`` as results record it."""
        return self.as_of.isoformat() if isinstance(self.as_of, datetime) else self.as_of


def folder_sha256(folder: Path) -> str:
    """Return the digest of a script's folder, without hidden files and what Python compiles.

    A file that another program removes meanwhile is not part of it.
    """
    digests: dict[Path, str] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = filter(_is_source, folders)
        for name in filter(_is_source, names):
            path = Path(parent, name)
            with suppress(FileNotFoundError):
                stat = path.stat()
                if S_ISREG(stat.st_mode):
                    digests[path.relative_to(folder)] = _sha256(
                        path, stat.st_ctime_ns, stat.st_size
                    )
    return text_sha256(json.dumps([(str(path), digests[path]) for path in sorted(digests)]))


def _is_source(name: str) -> bool:
    return not name.startswith((".", "__pycache__"))


@lru_cache(maxsize=4096)
def _sha256(path: Path, changed_ns: int, size: int) -> str:  # noqa: ARG001 (a change is another key)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def prompts_sha256() -> str:
    """Return the digest of our texts for judges."""
    return folder_sha256(_PACKAGE / "prompts")


@cache
def toolkit_sha256() -> str:
    """Return the digest of this version's rooms that make questions and scores.

    A checkout changes without another version number.
    """
    digests = [folder_sha256(_PACKAGE / room) for room in _ROOMS]
    return text_sha256(json.dumps([__version__, *digests]))


def inputs_digest(made_from: Provenance, sources_sha256: str, answer: AnswerFile) -> str:
    """Return the digest of all that a result is made from.

    Args:
        sources_sha256: of the script's folder (``folder_sha256``).

    Raises:
        AnswerError: the answer does not tell when it was made, and its script is to see that.
    """
    moment = made_from.inputs.as_of
    if moment == "answer":
        moment = answer_moment(answer.path, answer.created).isoformat()
    inputs = [
        sources_sha256,
        made_from.answer_sha256,
        dict(made_from.pages),
        made_from.listing_sha256,
        made_from.judge.model_dump(mode="json"),
        moment,
        toolkit_sha256(),
    ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def digest_now(
    made_from: Provenance, script: Path, answer: AnswerFile, text: str, pages: CacheFileSys | None
) -> str:
    """Return the digest that a result with this judge would have now; reads files.

    Args:
        pages: ``None`` leaves them uncompared.
    """
    now: dict[str, object] = {"answer_sha256": text_sha256(text)}
    if pages is not None:
        now["pages"] = {url: pages.digest(url) for url in made_from.pages}
        if made_from.listing_sha256 is not None:
            now["listing_sha256"] = listing_sha256(pages)
    return inputs_digest(made_from.model_copy(update=now), folder_sha256(script.parent), answer)


def moment_of(answer: AnswerFile, as_of: AsOf | None) -> datetime | None:
    """Return the moment that ``--as_of`` means for an answer.

    Raises:
        AnswerError: the answer does not tell when it was made.
    """
    if as_of == "answer":
        return answer_moment(answer.path, answer.created)
    return as_of


def why_judged_again(
    stored: LoadedResult, job: AnswerJob, text: str, conditions: Conditions
) -> str | None:
    """Return why a result of this answer does not hold, in one line; ``None`` if it does."""
    result = stored.content
    made_from = result.provenance
    if made_from is None or result.final_score is None:
        return "the earlier result does not say what it was made from"
    if result.is_edited or not result.has_checksum:
        return "the result file was changed after it was written"
    if result.doubts:
        return "the earlier result is in doubt"
    if _has_more_now(made_from, conditions):
        return "pages that were not available can be captured now"
    inputs = made_from.inputs.model_copy(update={"as_of": conditions.stated_moment})
    asked = made_from.model_copy(update={"judge": conditions.judge, "inputs": inputs})
    digest = digest_now(asked, job.script_path, job.answer, text, job.task_cache)
    is_same = digest == made_from.digest and result.time_seconds == job.answer.time_s
    return None if is_same else CHANGED


def _has_more_now(made_from: Provenance, conditions: Conditions) -> bool:
    is_missing = None in made_from.pages.values() and not made_from.with_captures
    is_refused = bool(made_from.refused_pages or made_from.refused_downloads)
    return (conditions.with_captures and is_missing) or (
        conditions.with_private_network and is_refused
    )


@dataclass(frozen=True, slots=True)
class ResultsNow:
    """The present state of an agent's answers and results.

    Args:
        stale: why results that are counted do not hold, by ``task/answer``.
        removed: tasks with results that have no answers any more.
        unchecked: comparisons that were not possible, one line each.
    """

    stale: Mapping[str, str] = field(default_factory=dict)
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
        select_answers(paths, agent_name)
    except UsageError as error:
        return ResultsNow(unchecked=(f"whether results are stale: {error}",))
    scripts = paths.eval_scripts_root
    if not scripts.is_dir():
        return ResultsNow(unchecked=(f"whether results are stale: no folder {scripts}",))
    known = [each for each in answers if task_ids is None or each.task_id in task_ids]
    judged = {each.place for each in scored_by_judge(known)}
    pages = paths.cache_root / agent_name
    unchecked = () if pages.is_dir() else (f"whether pages have changed: no folder {pages}",)
    tasks = (each.task_id for each in known)
    return ResultsNow(
        stale=dict(_stale(paths, agent_name, judged)),
        removed=removed_tasks(paths.answers_root / agent_name, tasks),
        unchecked=unchecked,
    )


def removed_tasks(answers: Path, task_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the tasks that the folder of an agent's answers does not have."""
    return tuple(task for task in dict.fromkeys(task_ids) if not (answers / task).is_dir())


def _stale(
    paths: PathConfig, agent_name: str, judged: Collection[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    for task_id, name, stored in latest_results(paths.eval_results_root, agent_name):
        if (task_id, name) not in judged:
            continue
        made_from = stored.content.provenance
        if made_from is None:
            yield f"{task_id}/{name}", "it does not say what it was made from"
        elif not holds_now(paths, agent_name, task_id, name, made_from):
            yield f"{task_id}/{name}", CHANGED


def holds_now(
    paths: PathConfig, agent_name: str, task_id: str, name: str, made_from: Provenance
) -> bool:
    """Tell whether a result holds for its own judge; reads files."""
    folder = paths.cache_root / agent_name
    try:
        script = paths.find_script(task_id)
        answer = answer_file(paths.answers_root / agent_name / task_id / name)
        text = read_answer(answer.path)
        pages = CacheFileSys(folder / task_id) if folder.is_dir() else None
        return script is not None and made_from.digest == digest_now(
            made_from, script.path, answer, text, pages
        )
    except (AnswerError, Mind2Web2Error, OSError) as error:
        log.info("result not compared: %s", error)
        return False
