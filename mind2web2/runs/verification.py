"""Checks an agent's results: each is replayed in a temporary folder and compared with the stored one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import connect
from typing import Any, Literal, NamedTuple

from mind2web2.capture.models import NetworkSettings
from mind2web2.judge.caching import REPLAY_ENDPOINT, JudgeSettings, RecordedJudge
from mind2web2.judge.protocol import DualSemaphore
from mind2web2.judge.store import FILE_NAME, NAMED_FILE
from mind2web2.judge.transfer import EXPORT_SUFFIX, open_for_replay, reading, source_of
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.verdicts import is_score
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.answers import RunFolders, TaskWork, answer_files
from mind2web2.runs.freshness import PresentReader
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.provenance import NO_PROVENANCE, Present, Provenance, provenance_in
from mind2web2.runs.reader import leaves_of, other_score_by_tree, score_by_tree
from mind2web2.runs.results import EDITED, LoadedResult, answer_dir, latest_result, newest_result_name
from mind2web2.runs.run import Concurrency, RunProgress, evaluate_work
from mind2web2.runs.summaries import (
    ALL_RESULTS_NAME,
    SUMMARY_NAME,
    agent_answers,
    task_answers,
    task_summary,
)
from mind2web2.scripts.isolation.processes import IS_POSSIBLE
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.utils.files import mirror, read_regular_file, text_sha256
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import mapping, mappings, natural_key

Kind = Literal["wrong", "stale", "missing"]
# The remedy: evaluate; evaluate although the result looks valid; name the file of judgments; look at the
# script; put the answer back; write the summaries again.
Cure = Literal["evaluate", "overwrite", "judgments", "script", "answer", "summaries"]

_MAX_NAMED = 5
# These keys differ in every replay, or are compared apart.
_NOT_COMPARED = frozenset({"provenance", "run", "doubts", "time_seconds", "judge_usage", "barred"})


class Finding(NamedTuple):
    """Something wrong, stale or missing, and its remedy."""

    kind: Kind
    text: str
    cure: Cure


@dataclass
class AnswerCheck:
    """The findings about one answer and its newest result, where one can be read."""

    task_id: str
    answer_name: str
    found: LoadedResult | None
    findings: list[Finding] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Return task and answer for messages."""
        return f"{self.task_id}/{self.answer_name}"

    @property
    def content(self) -> Mapping[str, Any]:
        """Return the content of the result."""
        return {} if self.found is None else self.found.content

    @property
    def score(self) -> float | None:
        """Return the score of the result."""
        score = self.content.get("final_score")
        return float(score) if is_score(score) else None

    @property
    def tree_score(self) -> float | None:
        """Return the score that follows from the leaves of its tree."""
        return score_by_tree(self.content)

    def add(self, kind: Kind, text: str, cure: Cure) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text, cure))

    @property
    def needs_replay(self) -> bool:
        """Tell whether a replay can add something: the result is not known to be wrong or stale."""
        settled = [found for found in self.findings if found.kind != "missing" or found.cure == "answer"]
        return self.found is not None and all(found.cure == "script" for found in settled)


class _Replay(NamedTuple):
    """The settings of results that are replayed together."""

    judgments: Path
    judge: JudgeSettings
    with_private_network: bool
    variables: tuple[str, ...]


def verified(
    paths: PathConfig,
    agent_name: str,
    task_ids: Sequence[str],
    *,
    judge: Mapping[str, Any] | None,
    judgments: Path | None,
) -> list[AnswerCheck]:
    """Check the results of these tasks; only temporary folders are written.

    Args:
        judge: the fields of ``JudgeRecord`` to compare; by default those of the newest result.
        judgments: a file of judgments; ``None`` takes those that each result was made from.

    Raises:
        UsageError: a file of judgments is damaged.
    """
    reader = PresentReader(paths, agent_name, judge=judge)
    checks: list[AnswerCheck] = []
    replays: dict[_Replay, list[AnswerCheck]] = {}
    for task_id in task_ids:
        for name, reason in _answer_names(paths, agent_name, task_id):
            folder = answer_dir(paths.eval_results_root, agent_name, task_id, name)
            check = AnswerCheck(task_id, name, latest_result(folder / "results"))
            checks.append(check)
            made_from = provenance_in(check.content)
            if check.found is None:
                _add_lacking(check, folder / "results", reason)
            else:
                _compare(check, folder / name, reader.present(task_id, name, check.content), reason)
            if made_from is not None and check.needs_replay:
                own = paths.eval_results_root / agent_name / FILE_NAME
                if path := judgments or _judgments_of(check, made_from, own):
                    replays.setdefault(_replay(made_from, path), []).append(check)
    for replay, some in replays.items():
        _compare_replayed(paths, agent_name, replay, some)
    return checks


def _answer_names(paths: PathConfig, agent_name: str, task_id: str) -> list[tuple[str, str | None]]:
    """Return the names of the answers to a task, and why those without a score have none."""
    reasons = {
        answer.answer_name: answer.reason
        for answer in task_answers(paths.eval_results_root, agent_name, task_id)
    }
    folders = (paths.eval_results_root / agent_name / task_id).glob("*/results")
    there = {answer.name for answer in answer_files(paths.answers_root / agent_name / task_id)[0]}
    names = there | reasons.keys() | {f"{folder.parent.name}.md" for folder in folders}
    return [(name, reasons.get(name)) for name in sorted(names, key=natural_key)]


def _add_lacking(check: AnswerCheck, folder: Path, reason: str | None) -> None:
    if newest := newest_result_name(folder):
        check.add("wrong", f"its newest result {newest} is damaged", "evaluate")
    else:
        check.add("missing", reason or "no result", "evaluate")


def _compare(check: AnswerCheck, copy: Path, present: Present, reason: str | None) -> None:
    """Add the findings that need no replay."""
    result = check.content
    changes = present.changes_since(result)
    if EDITED in changes:
        check.add("wrong", EDITED, "evaluate")
    elif reason is not None:
        check.add("missing", f"its score does not count: {reason}", "evaluate")
    for key, value in (("task_id", check.task_id), ("answer_name", check.answer_name)):
        own = str(result.get(key, value)).removesuffix(".md")
        if own not in (value.removesuffix(".md"), "unknown_answer"):
            check.add("wrong", f"its {key} is {own!r}: it is the result of something else", "overwrite")
    by_tree = other_score_by_tree(result)
    if by_tree is not None:
        text = f"its score is {result['final_score']:g}, but its rubric tree gives {by_tree:g}"
        check.add("wrong", text, "evaluate" if EDITED in changes else "script")
    for change in changes:
        if change == NO_PROVENANCE:
            check.add("missing" if result.get("provenance") is None else "wrong", change, "evaluate")
        elif change.startswith("answer") and present.answer_sha256 is None:
            check.add("missing", change, "answer")
        elif change != EDITED:
            check.add("stale", change, "evaluate")
    if (made_from := provenance_in(result)) is not None:
        _compare_copy(check, copy, made_from, present)


def _compare_copy(check: AnswerCheck, copy: Path, made_from: Provenance, present: Present) -> None:
    try:
        text = read_regular_file(copy).decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        check.add("missing", f"{copy.name}, the copy of the judged answer, is missing", "evaluate")
        return
    # An evaluation that was stopped may have copied the present answer.
    if text_sha256(text) not in (made_from.answer_sha256, present.answer_sha256):
        check.add("wrong", f"the copy {copy.name} differs from the judged answer", "overwrite")


def _judgments_of(check: AnswerCheck, made_from: Provenance, own: Path) -> Path | None:
    """Return the file with a result's judgments; ``None``, with a finding, where it is missing or changed."""
    source = made_from.replayed_from
    path = own if source is None else Path(source.path)
    if not path.is_file():
        of_replay = "" if source is None else " of the replay"
        check.add("missing", f"the file with its judgments{of_replay} is missing: {path}", "judgments")
        return None
    if source is not None and source.sha256 is not None and source_of(path).sha256 != source.sha256:
        check.add("stale", f"judgments: {path} has changed since it was replayed", "evaluate")
        return None
    return path


def _replay(made_from: Provenance, judgments: Path) -> _Replay:
    judge = made_from.judge
    settings = JudgeSettings(
        "replay",
        judge.model,
        judge.temperature,
        judge.reasoning_effort,
        None if judge.endpoint == REPLAY_ENDPOINT else judge.endpoint,
        max_images=judge.max_images,
        extra_body=judge.extra_body,
    )
    variables = tuple(name for name in made_from.inputs.variables if name in os.environ)
    return _Replay(judgments, settings, made_from.with_private_network, variables)


def _compare_replayed(
    paths: PathConfig, agent_name: str, replay: _Replay, checks: Sequence[AnswerCheck]
) -> None:
    """Judge answers again from stored judgments, and add the differences."""
    with tempfile.TemporaryDirectory(prefix="mind2web2-verify-") as folder:
        root = Path(folder)
        work = [_task_work(paths, agent_name, check) for check in checks]
        for check in checks:
            # The replay takes the time of the stored result for its script's clock.
            results = answer_dir(root, agent_name, check.task_id, check.answer_name) / "results"
            results.mkdir(parents=True)
            if check.found is not None:
                shutil.copy(check.found.path, results)
        for task_id in {check.task_id for check in checks}:
            _link_pages(paths.cache_root / agent_name / task_id, root / "cache" / agent_name / task_id)
        judgments = _copied(replay.judgments, root / FILE_NAME)
        outcomes = asyncio.run(
            _replayed(work, RunFolders(agent_name, root / "cache", root), replay, judgments)
        )
    for check, outcome in zip(checks, outcomes, strict=True):
        if outcome.result is None:
            check.add("missing", f"it cannot be replayed: {outcome.reason}", "judgments")
        elif differences := list(_differences(check.content, outcome.result)):
            more = f" and {len(differences) - _MAX_NAMED} more" if len(differences) > _MAX_NAMED else ""
            text = f"its judgments give another result: {'; '.join(differences[:_MAX_NAMED])}{more}"
            check.findings.insert(0, Finding("wrong", text, "overwrite"))


def _task_work(paths: PathConfig, agent_name: str, check: AnswerCheck) -> TaskWork:
    script = paths.find_script(check.task_id)
    assert script is not None, "a result without its script is stale, and not replayed"
    files = answer_files(paths.answers_root / agent_name / check.task_id)[0]
    answers = tuple(answer for answer in files if answer.name == check.answer_name)
    return TaskWork(check.task_id, answers, script.path, script.version)


def _link_pages(pages: Path, folder: Path) -> None:
    """Link a task's pages into a folder where a script may store others."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in pages.iterdir() if pages.is_dir() else ():
        if path.is_file():
            (folder / path.name).symlink_to(path.absolute())


def _copied(judgments: Path, copy: Path) -> Path:
    """Copy a store of judgments, which may be in use; an exported file is only read."""
    if judgments.suffix == EXPORT_SUFFIX:
        return judgments
    with reading(judgments, NAMED_FILE) as source, closing(connect(copy)) as target:
        source.execute("SELECT count(key || text) FROM judgments")
        source.backup(target)
    return copy


async def _replayed(
    work: Sequence[TaskWork], folders: RunFolders, replay: _Replay, judgments: Path
) -> list[AnswerOutcome]:
    with open_for_replay(judgments) as store:
        network = NetworkSettings(allow_private_network=replay.with_private_network)
        variables = {name: os.environ[name] for name in replay.variables}
        parts = RunParts(
            judge=RecordedJudge(replay.judge, None, store),
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(30)),
            reuse=False,
            answer_timeout_s=3600.0,
            with_private_network=replay.with_private_network,
            isolation=Isolation(network=network, variables=variables) if IS_POSSIBLE else None,
        )
        return await evaluate_work(work, folders, parts, Concurrency(), RunProgress())


def _differences(stored: Mapping[str, Any], replayed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of a result and its replay; details only where the verdicts are the same."""
    was, now = ({str(leaf.get("id")): leaf for leaf in leaves_of(result)} for result in (stored, replayed))
    for name in sorted(was.keys() ^ now.keys()):
        yield f"leaf {name!r} is {'not there' if name in was else 'missing'}"
    shared = [name for name in now if name in was]
    verdicts = [name for name in shared if _verdict(was[name]) != _verdict(now[name])]
    for name in verdicts:
        yield f"leaf {name!r} is {_verdict(now[name])} instead of {_verdict(was[name])}"
    if verdicts:
        return
    details = [name for name in shared if was[name] != now[name]]
    yield from (f"the evidence of leaf {name!r} differs" for name in details)
    known = {"eval_breakdown"} if details else set()
    for key in sorted(replayed.keys() - _NOT_COMPARED - known):
        if json.dumps(stored.get(key), sort_keys=True) != json.dumps(replayed[key], sort_keys=True):
            yield f"its {key} differs"


def _verdict(leaf: Mapping[str, Any]) -> str:
    return f"{leaf.get('status')} ({leaf.get('score')})"


def summary_findings(paths: PathConfig, agent_name: str, task_id: str | None) -> list[Finding]:
    """Return the differences between summaries and results: of one task, or of the agent and all agents."""
    root = paths.eval_results_root
    folder = root / agent_name if task_id is None else root / agent_name / task_id
    path = folder / SUMMARY_NAME
    if task_id is not None:
        entries = task_summary(task_answers(root, agent_name, task_id))
        if not entries and not path.exists():
            return []
        scores = {entry["answer_name"]: entry["score"] for entry in entries if entry["score"] is not None}
        stored = {entry.get("answer_name"): entry.get("score") for entry in mappings(_read(path))}
        return _summary_findings(path, stored, scores, folder.glob("*/results/*.md.json"))
    content = mapping(_read(path))
    tasks = mapping(content.get("tasks")) if content.get("missing_counted_as_zero") else None
    derived = agent_metrics(agent_name, agent_answers(root, agent_name), tasks)
    del derived["warnings"]
    findings = _summary_findings(
        path, content, json.loads(json.dumps(derived)), folder.glob("*/*/results/*.md.json")
    )
    merged = root / ALL_RESULTS_NAME
    mirror(merged).pull(merged)
    of_tasks = mapping(_read(merged))
    summaries = sorted(folder.glob(f"*/{SUMMARY_NAME}"))
    # A task without any scored answer has an empty summary, and no entry.
    by_task = {summary.parent.name: own for summary in summaries if (own := mappings(_read(summary)))}
    stored = {task: mapping(agents).get(agent_name) for task, agents in of_tasks.items()}
    return findings + _summary_findings(merged, stored, by_task, summaries)


def _summary_findings(
    path: Path, stored: Mapping[Any, Any], derived: Mapping[str, Any], sources: Iterable[Path]
) -> list[Finding]:
    if not path.exists():
        return [Finding("missing", f"there is no {path.name}", "summaries")]
    if _read(path) is None:
        return [Finding("wrong", f"{path.name} is damaged", "summaries")]
    differing = [
        f"{key} {_short(stored.get(key))} (by the results {_short(value)})"
        for key, value in derived.items()
        if not _is_same(stored.get(key), value)
    ]
    if not differing:
        return []
    # A run that was stopped has not summed up its last results.
    written_ns = path.stat().st_mtime_ns
    kind: Kind = "stale" if any(source.stat().st_mtime_ns > written_ns for source in sources) else "wrong"
    return [Finding(kind, f"{path.name} differs from the results: {', '.join(differing)}", "summaries")]


def _read(path: Path) -> Any:
    # Any: JSON; None where the file is missing or damaged.
    try:
        return json.loads(read_regular_file(path))
    except (OSError, ValueError, RecursionError):
        return None


def _is_same(stored: object, derived: object) -> bool:
    """Compare numbers up to rounding, which may differ from one Python to the next."""
    if isinstance(derived, dict) and isinstance(stored, dict):
        return derived.keys() <= stored.keys() and all(_is_same(stored[key], derived[key]) for key in derived)
    if isinstance(derived, list) and isinstance(stored, list):
        return len(derived) == len(stored) and all(map(_is_same, stored, derived))
    if isinstance(derived, float) and isinstance(stored, int | float):
        return abs(derived - stored) < 1.01e-4
    return stored == derived


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
