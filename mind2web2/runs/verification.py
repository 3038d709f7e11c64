"""Checks an agent's results.

Each script is run again from stored judgments, and the results are compared.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel

from mind2web2.analysis.metrics import agent_metrics
from mind2web2.analysis.summaries import ALL_RESULTS_NAME
from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.spec import JudgeRecord
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import copied_store, open_for_replay
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import (
    AnswerSetting,
    answer_file,
    answer_paths,
    failed_runs,
    read_answer,
)
from mind2web2.results.freshness import NO_PROVENANCE, FilesNow
from mind2web2.results.known_answers import agent_answers, task_answers
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import (
    LoadedResult,
    answer_dir,
    latest_result,
    newest_result_name,
)
from mind2web2.results.task_summary import (
    SUMMARY_NAME,
    overwritten_results,
    read_entries,
    task_summary,
)
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.answer import RunParts, ScriptTime, run_script_on_answer
from mind2web2.runs.session import OwnParts, replaying_judge, run_parts
from mind2web2.runs.settings import REPLAY, RunSettings
from mind2web2.scripts.sources import script_sources
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.json_fields import JsonObject, mapping, mappings
from mind2web2.utils.lenient import read_leniently
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.path_config import PathConfig

Kind = Literal["wrong", "stale", "missing"]

# From the gravest on.
KINDS: tuple[Kind, ...] = ("wrong", "stale", "missing")
_MAX_NAMED = 5
_AT_ONCE = 9
_ANSWER_TIMEOUT_S = 3600.0
# These keys differ whenever a script runs again, or are compared apart.
_NOT_COMPARED = frozenset(
    {
        "provenance",
        "run",
        "doubts",
        "time_seconds",
        "judge_usage",
        "barred",
        "script_faults",
    }
)

log = logging.getLogger(__name__)
# The evaluation has logged the same about its answers.
_unread_log = logging.getLogger(f"{__name__}.replay")
_unread_log.setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Finding:
    """Something wrong, stale or missing."""

    kind: Kind
    text: str


@dataclass
class Check:
    """The findings about an answer, or about the summaries of a task or of all tasks.

    Args:
        task_id: ``None`` for all tasks.
        answer_name: ``None`` for summaries.
        found: the newest result, where one can be read.
        score: of that result; 0 for a run in which the agent failed.
        score_again: the score of the script that was run again; ``None`` where it was not.
    """

    task_id: str | None = None
    answer_name: str | None = None
    found: LoadedResult | None = None
    findings: list[Finding] = field(default_factory=list)
    score: float | None = None
    score_again: float | None = None

    @property
    def place(self) -> str:
        """Return the name of the checked object for messages."""
        return "/".join(filter(None, (self.task_id, self.answer_name))) or "all tasks"

    @property
    def made_from(self) -> Provenance | None:
        """Return what the result was made from, as far as it says."""
        return None if self.found is None else self.found.content.provenance

    @property
    def kind(self) -> Kind | None:
        """Return the gravest kind of its findings, ``None`` where all is correct."""
        kinds = {finding.kind for finding in self.findings}
        return next((kind for kind in KINDS if kind in kinds), None)

    @property
    def state(self) -> str:
        """Return ``kind``, or ``ok``."""
        return self.kind or "ok"

    def add(self, kind: Kind, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text))


class CheckedAnswer(BaseModel):
    """An answer as ``verify-results --json`` prints it."""

    task_id: str | None
    answer_name: str | None
    path: Path | None
    score: float | None
    score_again: float | None
    record: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, check: Check) -> Self:
        """Return a checked answer."""
        return cls(
            task_id=check.task_id,
            answer_name=check.answer_name,
            path=None if check.found is None else check.found.path,
            score=check.score,
            score_again=check.score_again,
            record=check.state,
            findings=tuple(check.findings),
        )


class CheckedAgent(BaseModel):
    """An agent's results as ``verify-results --json`` prints them."""

    agent: str
    answers: tuple[CheckedAnswer, ...]
    summaries: dict[str, tuple[Finding, ...]]

    @classmethod
    def of(cls, agent: str, answers: Sequence[Check], summaries: Sequence[Check]) -> Self:
        """Return the checks of an agent."""
        return cls(
            agent=agent,
            answers=tuple(map(CheckedAnswer.of, answers)),
            summaries={check.place: tuple(check.findings) for check in summaries},
        )


def check_results(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str], judgments: Path | None
) -> list[Check]:
    """Check the results of these tasks; only temporary folders are written.

    Args:
        judgments: a file of judgments; ``None`` takes those that each result was made from.

    Raises:
        UsageError: a file of judgments is damaged.
    """
    files = FilesNow(paths, agent_name)
    own = paths.eval_results_root / agent_name / FILE_NAME
    checks: list[Check] = []
    run_again: dict[Path, list[Check]] = defaultdict(list)
    for task_id in task_ids:
        failed = failed_runs(paths.answers_root / agent_name / task_id)
        for name, reason in _answer_names(paths, agent_name, task_id):
            if name in failed and reason == failed[name]:
                checks.append(Check(task_id, name, score=0.0))
                continue
            check = _checked_file(paths, agent_name, task_id, name, reason)
            checks.append(check)
            made_from = check.made_from
            if made_from is None:
                continue
            for change in files.changes_since(task_id, name, made_from):
                check.add("stale", change)
            path = judgments or _judgments_of(made_from, own)
            if not path.is_file():
                check.add(
                    "missing",
                    f"the file with its judgments is missing (--judgments names another): {path}",
                )
            elif files.script(task_id) is not None:
                run_again[path].append(check)
    for path, some in run_again.items():
        asyncio.run(_compare_all(paths, agent_name, path, some))
    return checks


def _answer_names(paths: PathConfig, agent_name: str, task_id: str) -> list[tuple[str, str | None]]:
    """Return the names of the answers to a task, and why those without a score have none."""
    reasons = {
        answer.answer_name: answer.reason
        for answer in task_answers(paths.eval_results_root, agent_name, task_id)
    }
    folders = (paths.eval_results_root / agent_name / task_id).glob("*/results")
    there = {path.name for path in answer_paths(paths.answers_root / agent_name / task_id)}
    names = there | reasons.keys() | {f"{folder.parent.name}.md" for folder in folders}
    return [(name, reasons.get(name)) for name in sorted(names, key=natural_key)]


def _checked_file(
    paths: PathConfig, agent_name: str, task_id: str, name: str, reason: str | None
) -> Check:
    """Check the result file of an answer by itself."""
    folder = answer_dir(paths.eval_results_root, agent_name, task_id, name) / "results"
    found = latest_result(folder)
    if found is None:
        check = Check(task_id, name)
        if newest := newest_result_name(folder):
            check.add("wrong", f"its newest result {newest} is damaged")
        else:
            check.add("missing", reason or "no result")
        return check
    result = found.content
    check = Check(task_id, name, found, score=result.final_score)
    if result.is_edited:
        check.add(
            "wrong",
            "it was changed after it was written: its content does not match its checksum",
        )
    elif reason is not None:
        check.add("missing", f"its score does not count: {reason}")
    by_tree = result.other_score_by_tree
    if by_tree is not None:
        text = f"its score is {result.final_score:g}, but its rubric tree gives {by_tree:g}"
        check.add("wrong", text)
    if result.provenance is None:
        check.add("wrong" if result.has_provenance else "missing", NO_PROVENANCE)
    return check


def _judgments_of(made_from: Provenance, own: Path) -> Path:
    """Return the file with a result's judgments."""
    source = made_from.replayed_from
    return own if source is None else Path(source.path)


async def _compare_all(
    paths: PathConfig, agent_name: str, judgments: Path, checks: Sequence[Check]
) -> None:
    """Run the scripts again with a file of judgments, and add the differences."""
    library = PageLibrary()
    places = asyncio.Semaphore(_AT_ONCE)
    limits = DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(30))
    # By judge, use of private networks and variables of the environment.
    all_parts: dict[tuple[JudgeRecord, bool], RunParts] = {}
    with tempfile.TemporaryDirectory(prefix="mind2web2-verify-") as folder:
        root = Path(folder)

        @cache
        def pages_of(task_id: str) -> CacheFileSys:
            return _linked_pages(paths.cache_root / agent_name / task_id, root / task_id)

        async def compare(check: Check, store: JudgmentStore) -> None:
            made_from = check.made_from
            assert made_from is not None, "only such results are compared"
            async with places:
                try:
                    key = made_from.judge, made_from.with_private_network
                    if key not in all_parts:
                        all_parts[key] = _parts(made_from, store, library, limits)
                    setting = _setting(paths, agent_name, check, pages_of(str(check.task_id)))
                    text = read_answer(setting.answer.path)
                    time = ScriptTime.of_result(made_from)
                    again = await run_script_on_answer(
                        setting, all_parts[key], text, _unread_log, time
                    )
                except (Mind2Web2Error, OSError) as error:
                    _add_failure(check, " ".join(str(error).split()))
                    return
                except Exception as error:
                    log.exception("script failed again answer=%s", check.place)
                    reason = (
                        f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
                    )
                    _add_failure(check, reason)
                    return
            reasons = list(_why_other(check, paths.eval_results_root, setting))
            _compare(check, again, reasons)

        with open_for_replay(copied_store(judgments, root / FILE_NAME)) as store:
            await all_or_first_error(compare(check, store) for check in checks)


def _add_failure(check: Check, reason: str) -> None:
    # A change that is named already explains why judgments are missing.
    if not any(finding.kind == "stale" for finding in check.findings):
        check.add("missing", f"its script cannot be run again: {reason}")


def _compare(check: Check, again: ResultFile, reasons: Sequence[str]) -> None:
    """Add the differences of a result and the same script's result of now.

    Args:
        reasons: why another result says nothing against the stored one.
    """
    assert check.found is not None, "only results are compared"
    check.score_again = again.final_score
    differences = list(_differences(check.found.content, again))
    if not differences:
        return
    more = len(differences) - _MAX_NAMED
    named = "; ".join(differences[:_MAX_NAMED])
    if more > 0:
        named += f" and {more} more"
    text = f"run again, its script gives another result: {named}"
    if reasons:
        check.add("stale", f"{text} ({'; '.join(reasons)})")
    else:
        check.add("wrong", text)


def _why_other(check: Check, eval_results_root: Path, setting: AnswerSetting) -> Iterator[str]:
    """Yield why a script may give another result although the stored one was right."""
    yield from (each.text for each in check.findings if each.kind == "stale")
    overwritten = overwritten_results(eval_results_root / setting.agent_name / setting.task_id)
    newest = None if check.found is None else check.found.path.name
    if overwritten.get(setting.answer.name) == newest:
        yield "an unfinished --overwrite has replaced some judgments"
    if impure := script_sources(setting.script_path).impure:
        yield f"its script uses {name_list(impure)}, which may have changed"


def _linked_pages(pages: Path, folder: Path) -> CacheFileSys:
    """Return a task's pages in a folder where a script may store others."""
    folder.mkdir()
    for path in pages.iterdir() if pages.is_dir() else ():
        if path.is_file():
            _link(path.absolute(), folder / path.name)
    return CacheFileSys(folder)


def _link(path: Path, other: Path) -> None:
    """Give a file a second name, or copy it to another disk; a symbolic link would not be read."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)


def _parts(
    made_from: Provenance,
    store: JudgmentStore,
    library: PageLibrary,
    limits: DualSemaphore,
) -> RunParts:
    """Return the parts of a run from a result's judgments.

    Raises UsageError: its rule of votes is gone.
    """
    judge = made_from.judge
    if judge.vote_rule is None:
        raise UsageError("it was judged by a rule that this version does not have")
    settings = RunSettings(
        llm_provider=REPLAY,
        answer_timeout=_ANSWER_TIMEOUT_S,
        allow_private_network=made_from.with_private_network,
        no_barred=True,
    )
    return run_parts(
        settings,
        replaying_judge(judge.as_replay(), store),
        OwnParts(limits=limits),
        library=library,
    )


def _setting(
    paths: PathConfig, agent_name: str, check: Check, pages: CacheFileSys
) -> AnswerSetting:
    task_id = str(check.task_id)
    script = paths.find_script(task_id)
    assert script is not None, "only results whose task has a script are run again"
    folder = paths.answers_root / agent_name / task_id
    answer = answer_file(folder / str(check.answer_name))
    return AnswerSetting(agent_name, task_id, answer, script.path, script.version, pages)


def _differences(stored: ResultFile, again: ResultFile) -> Iterator[str]:
    """Yield how a result differs from another run; details only where the verdicts are the same."""
    was, now = ({leaf.id: leaf for leaf in result.leaves()} for result in (stored, again))
    for name in sorted(was.keys() ^ now.keys()):
        yield f"leaf {name!r} is {'not there' if name in was else 'missing'}"
    shared = [name for name in now if name in was]
    verdicts = [name for name in shared if _verdict(was[name]) != _verdict(now[name])]
    for name in verdicts:
        yield f"leaf {name!r} is {_verdict(now[name])} instead of {_verdict(was[name])}"
    if verdicts:
        return
    details = [name for name in shared if _differ(was[name].own_fields(), now[name].own_fields())]
    yield from (f"the evidence of leaf {name!r} differs" for name in details)
    known = {"eval_breakdown"} if details else set()
    for key in sorted(again.document.keys() - _NOT_COMPARED - known):
        if _differ(stored.document.get(key), again.document.get(key)):
            yield f"its {key} differs"


def _differ(one: object, other: object) -> bool:
    # Most are equal, and the texts take longer.
    return one != other and _compared_text(one) != _compared_text(other)


def _compared_text(value: object) -> str:
    return json.dumps(_without_failure_reasons(value), sort_keys=True)


def _without_failure_reasons(value: object) -> object:
    """Return JSON without the reasons why pages were unavailable.

    A later attempt may fail otherwise.
    """
    if isinstance(value, list):
        return [_without_failure_reasons(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_unavailable = ("outcome", "unavailable") in value.items()
    left_out = {"reason"} if is_unavailable else set()
    return {
        name: _without_failure_reasons(item) for name, item in value.items() if name not in left_out
    }


def _verdict(leaf: WrittenNode) -> str:
    return f"{leaf.status} ({leaf.score})"


class _SummaryTasks(BaseModel):
    """The tasks of an agent's summary, and whether it was given a list of them."""

    tasks: dict[str, JsonObject] = {}
    missing_counted_as_zero: bool = False


def summaries_checked(paths: PathConfig, agent_name: str, task_id: str | None) -> Check:
    """Compare summaries with results: those of one task, or of the agent and all agents."""
    root = paths.eval_results_root
    check = Check(task_id)
    if task_id is None:
        folder = root / agent_name
    else:
        folder = root / agent_name / task_id
    path = folder / SUMMARY_NAME
    if task_id is not None:
        entries = task_summary(task_answers(root, agent_name, task_id))
        if entries or path.exists():
            scores = {
                entry.answer_name: entry.score for entry in entries if entry.score is not None
            }
            stored = {entry.answer_name: entry.score for entry in read_entries(path)}
            _compare_summary(check, path, stored, scores, folder.glob("*/results/*.md.json"))
        return check
    content = mapping(_read(path))
    of = read_leniently(_SummaryTasks, content)
    tasks = of.tasks if of.missing_counted_as_zero else None
    metrics = agent_metrics(agent_name, agent_answers(root, agent_name), tasks).as_json()
    derived = {name: value for name, value in metrics.items() if name != "warnings"}
    _compare_summary(check, path, content, derived, folder.glob("*/*/results/*.md.json"))
    merged = root / ALL_RESULTS_NAME
    summaries = sorted(folder.glob(f"*/{SUMMARY_NAME}"))
    # A task without any scored answer has an empty summary, and no entry.
    by_task = {
        summary.parent.name: own for summary in summaries if (own := mappings(_read(summary)))
    }
    stored = {
        task: mapping(agents).get(agent_name) for task, agents in mapping(_read(merged)).items()
    }
    _compare_summary(check, merged, stored, by_task, summaries)
    return check


def _compare_summary(
    check: Check,
    path: Path,
    stored: JsonObject,
    derived: JsonObject,
    sources: Iterable[Path],
) -> None:
    if not path.exists():
        check.add("missing", f"there is no {path.name}")
        return
    if _read(path) is None:
        check.add("wrong", f"{path.name} is damaged")
        return
    differing = [
        f"{key} {_short(stored.get(key))} (by the results {_short(value)})"
        for key, value in derived.items()
        if not _is_same(stored.get(key), value)
    ]
    if differing:
        # A run that was stopped has not summed up its last results.
        written_ns = path.stat().st_mtime_ns
        is_older = any(source.stat().st_mtime_ns > written_ns for source in sources)
        text = f"{path.name} differs from the results: {', '.join(differing)}"
        check.add("stale" if is_older else "wrong", text)


def _read(path: Path) -> Any:
    # Any: JSON; None where the file is missing or damaged.
    try:
        return json.loads(read_regular_file(path))
    except (OSError, ValueError, RecursionError):
        return None


def _is_same(stored: object, derived: object) -> bool:
    """Compare numbers up to rounding, which may differ from one Python to the next."""
    if isinstance(derived, dict) and isinstance(stored, dict):
        return derived.keys() <= stored.keys() and all(
            _is_same(stored[key], derived[key]) for key in derived
        )
    if isinstance(derived, list) and isinstance(stored, list):
        return len(derived) == len(stored) and all(map(_is_same, stored, derived))
    if isinstance(derived, float) and isinstance(stored, int | float):
        return abs(derived - stored) < 1.01e-4
    return stored == derived


def _short(value: object) -> str:
    text = json.dumps(value)
    if len(text) <= 40:
        return text
    return f"{text[:40]}..."
