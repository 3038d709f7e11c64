"""Whether an agent's results are right and still hold: each is replayed elsewhere, and compared."""

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

from mind2web2.capture.settings import NetworkSettings
from mind2web2.judge.caching import REPLAY_ENDPOINT, JudgeSettings, RecordedJudge
from mind2web2.judge.protocol import DualSemaphore
from mind2web2.judge.store import FILE_NAME, NAMED_FILE
from mind2web2.judge.transfer import EXPORT_SUFFIX, open_for_replay, reading, source_of
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.aggregation import is_score
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.answers import TaskWork, answer_files
from mind2web2.runs.freshness import CHANGED, NO_PROVENANCE, PresentReader, stale_reasons
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.provenance import Provenance, provenance_in
from mind2web2.runs.reader import leaves_of, other_score_by_tree, score_by_tree
from mind2web2.runs.results import (
    LoadedResult,
    answer_dir,
    is_seal_broken,
    is_seal_gone,
    latest_result,
    newest_result_name,
)
from mind2web2.runs.run import Pace, RunFolders, RunProgress, evaluate_work
from mind2web2.runs.summaries import (
    ALL_RESULTS_NAME,
    SUMMARY_NAME,
    agent_answers,
    task_answers,
    task_summary,
)
from mind2web2.scripts.isolation.processes import IS_POSSIBLE
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.utils.files import read_regular_file, text_sha256
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.path_config import PathConfig

Kind = Literal["wrong", "stale", "missing"]
# What to do: evaluate, evaluate again although the result looks right, name the judgments, see the script,
# put the answer back, or sum up again.
Cure = Literal["evaluate", "overwrite", "judgments", "script", "answer", "summaries"]

_MAX_NAMED = 5
# Of a replay these are others by nature, or compared on their own.
_OF_EACH_RUN = frozenset({"provenance", "run", "doubts", "time_seconds", "judge_usage"})


class Finding(NamedTuple):
    """One thing that is wrong, stale or missing, and what to do about it."""

    kind: Kind
    text: str
    cure: Cure


@dataclass
class AnswerCheck:
    """What was found of an answer.

    Args:
        found: its newest result, where there is one that can be read.
    """

    task_id: str
    answer_name: str
    found: LoadedResult | None
    findings: list[Finding] = field(default_factory=list)

    @property
    def content(self) -> Mapping[str, Any]:
        """Return what the result says."""
        return {} if self.found is None else self.found.content

    @property
    def score(self) -> float | None:
        """Return the score that the result says."""
        score = self.content.get("final_score")
        return float(score) if is_score(score) else None

    @property
    def tree_score(self) -> float | None:
        """Return the score that its tree comes to."""
        return score_by_tree(self.content)

    def add(self, kind: Kind, text: str, cure: Cure) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text, cure))


class _Replay(NamedTuple):
    """What results that are replayed together have in common."""

    judgments: Path
    settings: JudgeSettings
    is_private: bool
    variables: tuple[str, ...]


def verified(
    paths: PathConfig,
    agent_name: str,
    task_ids: Sequence[str],
    *,
    judge: Mapping[str, Any] | None,
    judgments: Path | None,
) -> list[AnswerCheck]:
    """Check the results to these tasks; writes into temporary folders only.

    Args:
        judge: the fields of ``JudgeRecord`` that count, with their values.
        judgments: a file of judgments; ``None`` takes those that each result was made from.

    Raises:
        UsageError: a file of judgments is damaged.
    """
    present = PresentReader(paths, agent_name, judge=judge)
    checks: list[AnswerCheck] = []
    replays: dict[_Replay, list[AnswerCheck]] = {}
    for task_id in task_ids:
        for name, reason in _answer_names(paths, agent_name, task_id):
            check = _checked(paths, agent_name, task_id, name, reason, present)
            checks.append(check)
            made_from = provenance_in(check.content)
            settled = (each for each in check.findings if each.kind != "missing" or each.cure == "answer")
            if made_from is None or any(finding.cure != "script" for finding in settled):
                continue  # it is wrong or stale, whatever a replay comes to
            if (path := _judgments_of(check, made_from, paths, agent_name, judgments)) is not None:
                replays.setdefault(_replay(made_from, path), []).append(check)
    for replay, some in replays.items():
        _compare_replayed(paths, agent_name, replay, some)
    return checks


def _answer_names(paths: PathConfig, agent_name: str, task_id: str) -> list[tuple[str, str | None]]:
    """Return the names of the answers to a task, and why those without a score have none."""
    known = {
        answer.answer_name: answer for answer in task_answers(paths.eval_results_root, agent_name, task_id)
    }
    folders = (paths.eval_results_root / agent_name / task_id).glob("*/results")
    there = {answer.name for answer in answer_files(paths.answers_root / agent_name / task_id)[0]}
    names = there | known.keys() | {f"{folder.parent.name}.md" for folder in folders}
    return [(name, known[name].reason if name in known else None) for name in sorted(names, key=natural_key)]


def _checked(
    paths: PathConfig, agent_name: str, task_id: str, name: str, reason: str | None, present: PresentReader
) -> AnswerCheck:
    """Return what is found of a result without judging again."""
    folder = answer_dir(paths.eval_results_root, agent_name, task_id, name)
    found = latest_result(folder / "results")
    check = AnswerCheck(task_id, name, found)
    if found is None:
        if newest := newest_result_name(folder / "results"):
            check.add("wrong", f"its newest result {newest} is damaged", "evaluate")
        else:
            check.add("missing", reason or "no result", "evaluate")
        return check
    result = found.content
    is_changed = is_seal_broken(result) or is_seal_gone(result)
    if is_changed:
        gone = "its own checksum is gone" if is_seal_gone(result) else CHANGED
        check.add("wrong", gone, "evaluate")
    elif reason is not None:
        check.add("missing", f"its score does not count: {reason}", "evaluate")
    for key, value in (("task_id", task_id), ("answer_name", name)):
        own = str(result.get(key, value)).removesuffix(".md")
        if own not in (value.removesuffix(".md"), "unknown_answer"):
            check.add("wrong", f"its {key} is {own!r}: it is the result of something else", "overwrite")
    by_tree = other_score_by_tree(result)
    if by_tree is not None:
        text = f"final_score is {result['final_score']:g}, and by its tree {by_tree:g}"
        check.add("wrong", text, "evaluate" if is_changed else "script")
    made_from = provenance_in(result)
    if made_from is None:
        kind: Kind = "missing" if result.get("provenance") is None else "wrong"
        check.add(kind, NO_PROVENANCE, "evaluate")
        return check
    now = present.present(task_id, name, result)
    for stale in stale_reasons(result, now):
        if stale != CHANGED:
            is_gone = stale.startswith("answer") and now.answer_sha256 is None
            check.add("missing" if is_gone else "stale", stale, "answer" if is_gone else "evaluate")
    _check_copy(check, folder / name, made_from, now.answer_sha256)
    return check


def _check_copy(check: AnswerCheck, copy: Path, made_from: Provenance, answer_sha256: str | None) -> None:
    try:
        text = read_regular_file(copy).decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        check.add("missing", f"the copy {copy.name} of the answer that was judged is not there", "evaluate")
        return
    # An evaluation that was stopped may have put the present answer there.
    if text_sha256(text) not in (made_from.answer_sha256, answer_sha256):
        check.add("wrong", f"the copy {copy.name} beside it is not the answer that was judged", "overwrite")


def _judgments_of(
    check: AnswerCheck, made_from: Provenance, paths: PathConfig, agent_name: str, named: Path | None
) -> Path | None:
    """Return the file that a result's judgments are in; ``None`` where it is not there, or not the same."""
    if named is not None:
        return named
    source = made_from.replayed_from
    path = paths.eval_results_root / agent_name / FILE_NAME if source is None else Path(source.path)
    if not path.is_file():
        what = "its judgments are" if source is None else "the judgments that it was replayed from are"
        check.add("missing", f"{what} not there: {path}", "judgments")
        return None
    if source is not None and source.sha256 is not None and source_of(path).sha256 != source.sha256:
        check.add("stale", f"judgments: {path} has changed since it was replayed", "evaluate")
        return None
    return path


def _replay(made_from: Provenance, path: Path) -> _Replay:
    judge = made_from.judge
    endpoint = None if judge.endpoint == REPLAY_ENDPOINT else judge.endpoint
    settings = JudgeSettings(
        "replay",
        judge.model,
        judge.temperature,
        judge.reasoning_effort,
        endpoint,
        max_images=judge.max_images,
    )
    variables = tuple(name for name in made_from.inputs.variables if name in os.environ)
    return _Replay(path, settings, made_from.with_private_network, variables)


def _compare_replayed(
    paths: PathConfig, agent_name: str, replay: _Replay, checks: Sequence[AnswerCheck]
) -> None:
    """Judge answers again from stored judgments, and add how that comes out otherwise."""
    with tempfile.TemporaryDirectory(prefix="mind2web2-verify-") as folder:
        root = Path(folder)
        work = [_task_work(paths, agent_name, check) for check in checks]
        for check in checks:
            _lay_out(agent_name, check, root)
        for task_id in {check.task_id for check in checks}:
            _link_pages(paths.cache_root / agent_name / task_id, root / "cache" / agent_name / task_id)
        judgments = _copied(replay.judgments, root / FILE_NAME)
        outcomes = asyncio.run(
            _replayed(work, RunFolders(agent_name, root / "cache", root), replay, judgments)
        )
    for check, outcome in zip(checks, outcomes, strict=True):
        if outcome.result is None:
            check.add("missing", f"it cannot be replayed: {outcome.reason}", "judgments")
        elif differing := list(_differences(check.content, outcome.result)):
            more = f" and {len(differing) - _MAX_NAMED} more" if len(differing) > _MAX_NAMED else ""
            text = f"it is not what its judgments come to: {'; '.join(differing[:_MAX_NAMED])}{more}"
            check.findings.insert(0, Finding("wrong", text, "overwrite"))


def _task_work(paths: PathConfig, agent_name: str, check: AnswerCheck) -> TaskWork:
    script = paths.find_script(check.task_id)
    assert script is not None, "a result without its script is stale, and not replayed"
    files = answer_files(paths.answers_root / agent_name / check.task_id)[0]
    answers = tuple(answer for answer in files if answer.name == check.answer_name)
    return TaskWork(check.task_id, answers, script.path, script.version)


def _lay_out(agent_name: str, check: AnswerCheck, root: Path) -> None:
    """Put a result where the replay looks for the clock that its script saw."""
    assert check.found is not None
    folder = answer_dir(root, agent_name, check.task_id, check.answer_name) / "results"
    folder.mkdir(parents=True)
    shutil.copy(check.found.path, folder)


def _link_pages(pages: Path, folder: Path) -> None:
    """Lend a task's pages to a script, which may store others there."""
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
        network = NetworkSettings(allow_private_network=replay.is_private)
        variables = {name: os.environ[name] for name in replay.variables}
        parts = RunParts(
            judge=RecordedJudge(replay.settings, None, store),
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(30)),
            reuse=False,
            answer_timeout_s=3600.0,
            with_private_network=replay.is_private,
            isolation=Isolation(network=network, variables=variables) if IS_POSSIBLE else None,
        )
        return await evaluate_work(work, folders, parts, Pace(), RunProgress())


def _differences(stored: Mapping[str, Any], replayed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a result and its replay say otherwise; details only where the verdicts are the same."""
    was, now = ({str(leaf.get("id")): leaf for leaf in leaves_of(result)} for result in (stored, replayed))
    for name in sorted(was.keys() ^ now.keys()):
        yield f"leaf {name!r} is {'not there' if name in was else 'missing'}"
    shared = [name for name in now if name in was]
    verdicts = [name for name in shared if _verdict(was[name]) != _verdict(now[name])]
    yield from (
        f"leaf {name!r} is {_verdict(now[name])} instead of {_verdict(was[name])}" for name in verdicts
    )
    if verdicts:
        return
    details = [name for name in shared if was[name] != now[name]]
    yield from (f"the evidence of leaf {name!r} differs" for name in details)
    names = {"eval_breakdown"} if details else set()
    for key in sorted(replayed.keys() - _OF_EACH_RUN - names):
        if json.dumps(stored.get(key), sort_keys=True) != json.dumps(replayed[key], sort_keys=True):
            yield f"its {key} differs"


def _verdict(leaf: Mapping[str, Any]) -> str:
    return f"{leaf.get('status')} ({leaf.get('score')})"


def summary_findings(paths: PathConfig, agent_name: str, task_id: str) -> list[Finding]:
    """Return how a task's ``summary.json`` differs from its results."""
    root = paths.eval_results_root
    path = root / agent_name / task_id / SUMMARY_NAME
    derived = task_summary(task_answers(root, agent_name, task_id))
    stored = _read(path)
    if not derived and stored is None:
        return []
    entries = {entry.get("answer_name"): entry for entry in stored or () if isinstance(entry, dict)}
    lacking = [
        entry["answer_name"]
        for entry in derived
        if any(entries.get(entry["answer_name"], {}).get(key) != entry[key] for key in ("score", "status"))
        and entry["score"] is not None
    ]
    return _of_summary(
        path, stored, name_list(lacking) if lacking else "", path.parent.glob("*/results/*.md.json")
    )


def agent_findings(paths: PathConfig, agent_name: str) -> list[Finding]:
    """Return how the summaries of an agent and of all agents differ from its results."""
    root = paths.eval_results_root
    path = root / agent_name / SUMMARY_NAME
    stored = _read(path)
    content = stored if isinstance(stored, dict) else {}
    tasks = content.get("tasks") if content.get("missing_counted_as_zero") else None
    metrics = agent_metrics(
        agent_name, agent_answers(root, agent_name), tasks if isinstance(tasks, dict) else None
    )
    derived = json.loads(json.dumps(metrics.summary()))
    differing = [key for key in derived if key != "warnings" and not _is_same(content.get(key), derived[key])]
    text = ", ".join(
        f"{key} {_short(content.get(key))} (by the results {_short(derived[key])})" for key in differing
    )
    found = _of_summary(path, stored, text, path.parent.glob("*/*/results/*.md.json"))
    merged = _read(root / ALL_RESULTS_NAME)
    summaries = sorted((root / agent_name).glob(f"*/{SUMMARY_NAME}"))
    tasks_of = merged if isinstance(merged, dict) else {}
    other = [
        summary.parent.name
        for summary in summaries
        # A task without any scored answer has an empty summary, and no entry.
        if ((tasks_of.get(summary.parent.name) or {}).get(agent_name) or []) != (_read(summary) or [])
    ]
    return found + _of_summary(root / ALL_RESULTS_NAME, merged, name_list(other) if other else "", summaries)


def _of_summary(path: Path, stored: object, differing: str, newer: Iterable[Path]) -> list[Finding]:
    if not path.exists():
        return [Finding("missing", f"there is no {path.name}", "summaries")]
    if stored is None:
        return [Finding("wrong", f"{path.name} is damaged", "summaries")]
    if not differing:
        return []
    # A run that was stopped has not summed its last results up.
    written_ns = path.stat().st_mtime_ns
    kind: Kind = "stale" if any(other.stat().st_mtime_ns > written_ns for other in newer) else "wrong"
    return [Finding(kind, f"{path.name} is not what the results say: {differing}", "summaries")]


def _read(path: Path) -> Any:
    # Any: what a file of JSON holds; None where it is not there or damaged.
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
