"""Check an agent's answers, and pack them with pages, results and judgments."""

from __future__ import annotations

import hashlib
import json
import tempfile
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypedDict
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pydantic import ValidationError

from mind2web2 import __version__
from mind2web2.analysis.score_matrix import NO_ANSWER, NO_RUNS
from mind2web2.analysis.summaries import stored_metrics
from mind2web2.errors import AnswerError, UsageError
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import export_judgments
from mind2web2.pages.citations import cited_urls
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.answer_files import with_unevaluated
from mind2web2.results.answers import (
    AnswerMeta,
    is_empty_answer,
    is_expected,
    read_answer,
)
from mind2web2.results.freshness import results_now
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.shards import shard_caution
from mind2web2.results.stored_results import latest_results
from mind2web2.utils.files import (
    check_replaceable,
    first_link,
    is_leftover,
    read_regular_file,
    stage_file,
)
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, fixed

LEADERBOARD_RUNS = 3
_FORMAT = "mind2web2-submission-1"


@dataclass
class Findings:
    """Errors in an agent's answers, and possible mistakes."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def validate_answers(agent_folder: Path, task_ids: Sequence[str], num_runs: int) -> Findings:
    """Check the answers to each task: that they are there, can be read, and cite pages."""
    findings = Findings()
    if not agent_folder.is_dir():
        findings.errors.append(f"{agent_folder}: there is no such folder")
        return findings
    for task_id in task_ids:
        _check_task(agent_folder / task_id, num_runs, findings)
    entries = [entry.name for entry in agent_folder.iterdir() if not entry.name.startswith(".")]
    if others := set(entries) - set(task_ids):
        findings.warnings.append(f"{agent_folder}: not in the task list: {name_list(others)}")
    return findings


def _check_task(folder: Path, num_runs: int, findings: Findings) -> None:
    if not folder.is_dir():
        findings.errors.append(f"{folder}: there is no such folder")
        return
    for entry in sorted(folder.iterdir(), key=lambda entry: natural_key(entry.name)):
        if not is_expected(entry.name):
            findings.warnings.append(
                f"{entry}: stray file, answers are called answer_<k>.md, k = 1, 2, 3"
            )
        elif entry.name.endswith(".meta.json"):
            _check_meta(entry, findings)
    expected = {f"answer_{number}.md" for number in range(1, num_runs + 1)}
    names = {entry.name for entry in folder.glob("answer_*.md") if is_expected(entry.name)}
    for name in sorted(expected | names, key=natural_key):
        path = folder / name
        if name not in names:
            findings.warnings.append(f"{path}: missing")
            continue
        if name not in expected:
            findings.warnings.append(f"{path}: beyond {counted(num_runs, 'run')}")
        _check_answer(path, findings)


def _check_answer(path: Path, findings: Findings) -> None:
    try:
        if is_empty_answer(path):
            findings.warnings.append(f"{path}: empty, the run counts as 0")
        elif not cited_urls(read_answer(path)):
            findings.warnings.append(f"{path}: it cites no URL")
    except (AnswerError, OSError) as error:
        findings.errors.append(str(error))


def _check_meta(path: Path, findings: Findings) -> None:
    stem = path.name.partition(".")[0]
    if not path.with_name(f"{stem}.md").exists():
        findings.warnings.append(f"{path}: there is no answer of this number")
    try:
        AnswerMeta.model_validate_json(read_regular_file(path).removeprefix(BOM_UTF8))
    except OSError as error:
        findings.errors.append(f"{path}: {error.strerror}")
    except ValidationError as error:
        fault = error.errors()[0]
        names = "".join(f"{name}: " for name in fault["loc"])
        findings.errors.append(f"{path}: {names}{fault['msg']}")


def answers_without_result(summary: AgentSummary) -> list[str]:
    """Return the agent's answers that have no score, as ``task/answer_1``."""
    return [
        f"{each.task_id}/{each.answer_name.removesuffix('.md')}"
        for each in summary.missing
        if each.reason not in (NO_ANSWER, NO_RUNS)
    ]


def evaluated_answers(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str]
) -> tuple[list[ScoredAnswer], AgentSummary]:
    """Return an agent's answers, evaluated or not, and their metrics at these tasks."""
    answers = agent_answers(paths.eval_results_root, agent_name)
    answers = with_unevaluated(answers, paths, agent_name)
    return answers, stored_metrics(paths.eval_results_root, agent_name, answers, task_ids)


def leaderboard_entry(
    paths: PathConfig,
    answers: Sequence[ScoredAnswer],
    summary: AgentSummary,
    task_ids: Sequence[str],
) -> tuple[dict[str, str | None] | None, str]:
    """Return an agent's entry for the leaderboard, or the reason why there is none.

    Args:
        answers: each of the agent's, none without a result.
        summary: of these tasks.
    """
    agent_name = summary.agent_name
    if caution := shard_caution(paths.eval_results_root / agent_name):
        return None, caution
    now = results_now(paths, agent_name, answers, task_ids)
    if now.stale:
        return (
            None,
            f"results that no longer hold: {name_list(now.stale)}; run "
            f"{command_line('evaluate', agent_name)}",
        )
    if summary.num_runs != LEADERBOARD_RUNS:
        return (
            None,
            f"it needs {LEADERBOARD_RUNS} runs, and there are {summary.num_runs}",
        )
    time_s = summary.avg_time_seconds
    return {
        "agent": agent_name,
        "partial_completion": _in_two_decimals(summary.avg_score),
        "success_rate": _in_two_decimals(summary.success_rate),
        "pass3": _in_two_decimals(summary.pass_at_k),
        "minutes": _in_two_decimals(None if time_s is None else time_s / 60),
        "words": _in_two_decimals(summary.avg_answer_word_count),
    }, ""


def _in_two_decimals(value: float | None) -> str | None:
    return None if value is None else fixed(value, 2)


class PackedFile(TypedDict):
    """A file of the archive, as its manifest lists it."""

    sha256: str
    bytes: int


class PackedArchive(NamedTuple):
    """A written archive, and how many files it has."""

    path: Path
    files: int


def pack_submission(
    paths: PathConfig, agent_name: str, output: Path, more: JsonObject
) -> PackedArchive:
    """Write answers, pages, newest results and judgments into a ZIP file.

    Args:
        more: further fields of the manifest.

    Raises:
        UsageError: a result was changed by hand, a file is a link, has a name that is not UTF-8 or
            cannot be read, or the archive cannot be written.
        JudgmentStoreError: the judgments cannot be read.
    """
    files: dict[str, PackedFile] = {}
    try:
        check_replaceable(output)
        staged = stage_file(output.parent, b"")
        try:
            with (
                ZipFile(staged, "w", ZIP_DEFLATED) as archive,
                tempfile.TemporaryDirectory() as scratch,
            ):
                for name, path in _members(paths, agent_name, Path(scratch)):
                    content = read_regular_file(path)
                    files[name] = {
                        "sha256": hashlib.sha256(content).hexdigest(),
                        "bytes": len(content),
                    }
                    archive.writestr(_entry(name), content)
                manifest = {
                    "format": _FORMAT,
                    "agent_name": agent_name,
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                    "mind2web2": __version__,
                    **more,
                    "files": files,
                }
                archive.writestr(
                    _entry("manifest.json"),
                    json.dumps(manifest, indent=1, ensure_ascii=False),
                )
            staged.replace(output)
        finally:
            staged.unlink(missing_ok=True)
    except OSError as error:
        at = Path(error.filename or "")
        # The archive is written under another name first.
        is_output = at == output or is_leftover(at.name)
        place = "" if error.filename is None or is_output else f"{at}: "
        raise UsageError(f"cannot pack {output}: {place}{error.strerror or error}") from error
    except UnicodeEncodeError as error:
        text = f"cannot pack {output}: {error.object!a} is not UTF-8: give it a name that is"
        raise UsageError(text) from error
    return PackedArchive(output, len(files))


def _entry(name: str) -> ZipInfo:
    # Without the time of packing, equal files give equal archives.
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _members(paths: PathConfig, agent_name: str, scratch: Path) -> Iterator[tuple[str, Path]]:
    for root, folder in {
        "answers": paths.answers_root,
        "cache": paths.cache_root,
    }.items():
        for path in sorted((folder / agent_name).rglob("*")):
            parts = path.relative_to(folder / agent_name).parts
            is_internal = any(is_leftover(part) or part.startswith(".") for part in parts)
            if (path.is_file() or path.is_symlink()) and not is_internal and path.suffix != ".lock":
                yield (
                    _name(root, folder / agent_name, path),
                    _no_link(path, folder / agent_name),
                )
    results = paths.eval_results_root / agent_name
    for path in sorted([*results.glob("summary.json"), *results.glob("*/*.json")]):
        yield _name("eval_results", results, path), _no_link(path, results)
    for task_id, answer_name, result in latest_results(paths.eval_results_root, agent_name):
        result.unchanged()
        yield _name("eval_results", results, result.path), _no_link(result.path, results)
        stem = answer_name.removesuffix(".md")
        copy = results / task_id / stem / f"{stem}.md"
        if copy.is_file():
            yield _name("eval_results", results, copy), _no_link(copy, results)
    if (results / STORE_NAME).is_file():
        exported = scratch / "judgments.jsonl"
        with JudgmentStore(results / STORE_NAME) as store:
            export_judgments(store, exported)
        yield f"eval_results/{agent_name}/judgments.jsonl", exported


def _no_link(path: Path, folder: Path) -> Path:
    """Return the path of a file to pack.

    Raises:
        UsageError: it leads out of the folder, or may do so.
    """
    link = first_link(path, folder)
    if link is not None:
        raise UsageError(
            f"{link} is a link, which might lead to a file that is not to be handed in: put the "
            "file "
            "in its place, or delete it"
        )
    return path


def _name(root: str, folder: Path, path: Path) -> str:
    return f"{root}/{folder.name}/{path.relative_to(folder).as_posix()}"
