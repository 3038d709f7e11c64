"""Flat tables of results, with a row for each leaf or each answer."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

from mind2web2.errors import UsageError
from mind2web2.results.claim_facts import claim_facts, is_claim
from mind2web2.results.known_answers import (
    agent_answers,
    no_results,
    task_answers,
)
from mind2web2.results.result_file import JudgeUsage, ResultFile
from mind2web2.results.scored_answer import ScoredAnswer, scored_by_judge
from mind2web2.results.stored_results import (
    answer_results_dir,
    latest_result,
    latest_results,
)
from mind2web2.rubric.written_tree import LeafPlace
from mind2web2.utils.files import folder_names, replaced_file

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
FORMATS = (".csv", ".jsonl")

Row = Mapping[str, object]


@dataclass(frozen=True)
class LeafRecord:
    """One leaf of one result.

    Args:
        run: the answer's number, of ``answer_<k>``; ``None`` for other names.
        path: the ids from below the root to the leaf, with slashes.
        tags: of the leaf and of the nodes above it.
        critical: the leaf is a gate.
        verdict: ``passed``, ``failed``, ``skipped`` or ``initialized`` (never judged).
        decided_by: ``judge``, ``page`` (none was available), ``prerequisite``, ``script`` or
            ``error``.
        votes_for, votes_against: on the answer alone and on all pages; declined votes count in
            neither.
        quotation: the worst match of the judge's quotations: ``found``, ``approximate`` or
            ``not_found``; ``None`` without any.
        weak: the evidence is too weak to rely on the verdict (docs/scoring.md).
        pages: how many pages the claim was held against.
        page: the page that supports it, else the first one.
        judgments: the judge's replies for the leaf.
        cost_usd: the leaf's part of the answer's cost, by judgments; ``None`` where the price is
            unknown.
    """

    agent: str
    task_id: str
    run: int | None
    answer_name: str
    leaf: str
    path: str
    tags: tuple[str, ...]
    critical: bool
    verdict: str
    decided_by: str | None
    votes_for: int
    votes_against: int
    quotation: str | None
    weak: bool
    pages: int
    judge: str | None
    judgments: int
    cost_usd: float | None
    desc: str | None
    claim: str | None
    page: str | None


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """One answer.

    Args:
        score: ``None`` without a result, for which ``reason`` says why.
        words: whitespace-separated words of the answer.
        seconds: the agent's time.
        created: when the result was made, UTC, ISO 8601.
    """

    agent: str
    task_id: str
    run: int | None
    answer_name: str
    score: float | None
    leaves: int = 0
    passed: int = 0
    skipped: int = 0
    judge: str | None
    judgments: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    words: int | None
    seconds: float | None
    created: str | None = None
    reason: str | None


Record = LeafRecord | AnswerRecord


@dataclass(frozen=True)
class AgentResults:
    """The newest results of an agent."""

    agent: str
    answers: tuple[AnswerRecord, ...]
    leaves: tuple[LeafRecord, ...]


def load_results(agent: str, eval_results_root: str | Path = "eval_results") -> AgentResults:
    """Return the newest results of an agent as typed records.

    Args:
        agent: a folder under the root.
        eval_results_root: the folder with results.

    Raises:
        UsageError: there are none.
    """
    root = Path(eval_results_root)
    answers = tuple(answer_rows(agent, root))
    return AgentResults(agent, answers, tuple(leaf_rows(agent, root)))


def answer_rows(agent: str, root: Path) -> Iterator[AnswerRecord]:
    """Yield an agent's answers; one result is in memory at a time.

    Raises:
        UsageError: there are none, or one was changed after it was written.
    """
    is_empty = True
    for task_id in folder_names(root / agent):
        for answer in task_answers(root, agent, task_id):
            is_empty = False
            stored = latest_result(answer_results_dir(root, agent, task_id, answer.answer_name))
            content = None if stored is None else stored.unchanged()
            # A stored result may not count, as where the answer was emptied since.
            yield _answer_record(agent, answer, content if answer.reason is None else None)
    if is_empty:
        raise no_results(root, agent)


def leaf_rows(agent: str, root: Path) -> Iterator[LeafRecord]:
    """Yield the leaves of an agent's newest results; one result is in memory at a time."""
    # A stored result may not count, as where the answer was emptied or removed since.
    judged = {answer.place for answer in scored_by_judge(agent_answers(root, agent))}
    for task_id, name, loaded in latest_results(root, agent):
        content = loaded.unchanged()
        if (task_id, name) in judged:
            yield from leaf_records(agent, task_id, name, content)


def without_texts(record: Record) -> Record:
    """Return a record without texts of tasks, answers and pages.

    Scripts make ids and tags from extracted values, so a digest replaces each.
    """
    if isinstance(record, AnswerRecord):
        return replace(record, reason=None)
    return replace(
        record,
        leaf=_digest(record.leaf),
        path="/".join(map(_digest, record.path.split("/"))),
        tags=tuple(map(_digest, record.tags)),
        desc=None,
        claim=None,
        page=None,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def write_table(path: Path, records: Iterable[Record], kind: type[Record]) -> int:
    """Write records as CSV or JSON lines, and return their number.

    Args:
        records: are written one after another, and not kept.
        kind: of the records, which names the columns of an empty table.

    Raises:
        UsageError: the name ends otherwise, or the file cannot be written.
    """
    write = _WRITERS.get(path.suffix)
    if write is None:
        raise UsageError(f"cannot write {path}: name a file that ends in {', '.join(FORMATS)}")
    with UsageError.unable_to(f"write {path}"), replaced_file(path) as file:
        return write(file, kind, map(asdict, records))


def _write_csv(file: BinaryIO, kind: type[Record], rows: Iterable[Row]) -> int:
    columns = [field.name for field in fields(kind)]
    # Excel takes a file without the mark for one of another encoding.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([_cell(row[column]) for column in columns])
        count += 1
    text.detach()
    return count


def _write_lines(
    file: BinaryIO,
    kind: type[Record],  # noqa: ARG001 (rows name their columns)
    rows: Iterable[Row],
) -> int:
    count = 0
    for row in rows:
        line = json.dumps(row, ensure_ascii=False) + "\n"
        # A judge's half surrogate becomes its JSON escape.
        file.write(line.encode("utf-8", "backslashreplace"))
        count += 1
    return count


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | tuple):
        return value
    text = value if isinstance(value, str) else " ".join(value)
    plain = _CONTROLS.sub(" ", text)
    # Spreadsheets evaluate a cell that begins with one of these signs.
    return f"'{plain}" if plain.lstrip().startswith(("=", "+", "-", "@")) else plain


_WRITERS = {".csv": _write_csv, ".jsonl": _write_lines}


def _run_of(answer_name: str) -> int | None:
    number = answer_name.removeprefix("answer_").removesuffix(".md")
    if number.isdecimal() and number.isascii():
        return int(number)
    return None


def _answer_record(agent: str, answer: ScoredAnswer, result: ResultFile | None) -> AnswerRecord:
    record = AnswerRecord(
        agent=agent,
        task_id=answer.task_id,
        run=_run_of(answer.answer_name),
        answer_name=answer.answer_name,
        score=answer.score,
        judge=answer.judge_model,
        words=answer.word_count,
        seconds=answer.time_s,
        reason=answer.reason,
    )
    if result is None:
        return record
    statuses = [leaf.status for leaf in result.leaves()]
    record = replace(
        record,
        leaves=len(statuses),
        passed=statuses.count("passed"),
        skipped=statuses.count("skipped"),
        created=result.run.created,
    )
    usage = result.judge_usage
    if usage is None:
        return record
    return replace(
        record,
        judgments=usage.judgments,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
    )


def leaf_records(
    agent: str, task_id: str, answer_name: str, result: ResultFile
) -> Iterator[LeafRecord]:
    """Yield the leaves of a result, in the order of the rubric."""
    for tree in result.trees:
        for place in tree.leaf_places():
            yield _leaf_record(agent, task_id, answer_name, result, place)


def _leaf_record(
    agent: str,
    task_id: str,
    answer_name: str,
    result: ResultFile,
    place: LeafPlace,
) -> LeafRecord:
    leaf = place.leaf
    votes = [vote for group in leaf.grounds.vote_groups() for vote in group]
    opinions = [vote.supported for vote in votes if not vote.declined]
    checks = leaf.grounds.pages
    supporting = [check.url for check in checks if check.outcome == "supported"]
    facts = claim_facts(leaf)
    quotation = next(
        (match for match in ("not_found", "approximate", "found") if match in facts.quotes),
        None,
    )
    usage = result.judge_usage or JudgeUsage()
    share = len(votes) / usage.judgments if usage.judgments else 0.0
    return LeafRecord(
        agent=agent,
        task_id=task_id,
        run=_run_of(answer_name),
        answer_name=answer_name,
        leaf=leaf.id,
        path=place.path,
        tags=tuple(place.tags),
        critical=leaf.critical,
        verdict=leaf.status,
        decided_by=None if leaf.evidence is None else leaf.evidence.decided_by,
        votes_for=opinions.count(True),
        votes_against=opinions.count(False),
        quotation=quotation,
        weak=is_claim(leaf) and facts.is_weak,
        pages=len(checks),
        judge=result.judge_model,
        judgments=len(votes),
        cost_usd=None if usage.cost_usd is None else usage.cost_usd * share,
        desc=leaf.desc,
        claim=leaf.grounds.claim,
        page=supporting[0] if supporting else checks[0].url if checks else None,
    )
