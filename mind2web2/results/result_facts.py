"""The facts of one result about its making and its verdicts, in short; pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mind2web2.judge.record import JudgeRecord
from mind2web2.results.claim_facts import (
    claim_facts,
    extraction_reservations,
    is_claim,
    page_checks,
)
from mind2web2.results.provenance import Provenance, Served
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import OWN_PACKAGE, ResultFacts, ScoredAnswer
from mind2web2.results.stored_results import latest_result
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.rubric.written_tree import WrittenNode

log = logging.getLogger(__name__)

_JUDGE_PARAMETERS = {"temperature", "reasoning_effort", "max_images", "extra_body"}


def result_facts(result: ResultFile) -> ResultFacts:
    """Return the facts that a result states."""
    made_from = result.provenance
    leaves = list(result.leaves())
    served = () if made_from is None else made_from.served
    reservations = [extraction_reservations(record) for record in result.extractions]
    return ResultFacts(
        judge=_judge(result, made_from),
        server=None if made_from is None else _server(made_from.judge),
        served=frozenset(_names(served)),
        versions=_versions(result, made_from),
        script=None if made_from is None else made_from.script,
        script_sha256=None if made_from is None else made_from.script_sha256,
        in_doubt=bool(result.doubts),
        capture_days=_capture_days(leaves),
        is_explained=any(leaf.evidence is not None for leaf in leaves),
        is_treeless=not leaves,
        is_off_tree=result.other_score_by_tree is not None,
        is_flagged=bool(result.answer_flags),
        claims=tuple(claim_facts(leaf) for leaf in leaves if is_claim(leaf)),
        extractions=tuple(found for found in reservations if found),
    )


def answer_of_result(path: Path) -> ScoredAnswer:
    """Return an answer with what its newest result says."""
    answer_folder = path.parent.parent
    answer = ScoredAnswer(answer_folder.parent.name, f"{answer_folder.name}.md")
    result = latest_result(path.parent)
    if result is None:
        why = f"its newest result {path.name} is damaged: evaluate it again"
        return replace(answer, reason=why)
    content = result.content
    if content.is_edited:
        log.warning("result was changed after it was written, counts as none path=%s", path)
        why = f"its newest result {path.name} was changed after it was written: evaluate it again"
        return replace(answer, reason=why)
    if content.final_score is None:
        log.warning("no score from 0 to 1 in result %s", path)
        why = f"no score from 0 to 1 in its result {path.name}: evaluate it again"
        return replace(answer, reason=why)
    return replace(
        answer,
        score=content.final_score,
        judge_model=content.judge_model,
        time_s=content.time_seconds,
        facts=result_facts(content),
    )


def _judge(result: ResultFile, made_from: Provenance | None) -> str | None:
    if made_from is None:
        return f"{result.judge_model}, parameters not recorded" if result.judge_model else None
    judge_parameters = made_from.judge.model_dump(include=_JUDGE_PARAMETERS, exclude_none=True)
    parameters = [f"{name}={value}" for name, value in judge_parameters.items()]
    if made_from.judge.votes != DEFAULT_TRIALS:
        parameters.append(f"votes={made_from.judge.votes}")
    return " ".join([result.judge_model or made_from.judge.model, *parameters])


def _server(judge: JudgeRecord) -> str | None:
    # A replay takes judgments of any server; a caller's own client has another name in each
    # process.
    is_unknown = judge.endpoint in ("", "replay") or judge.endpoint.startswith("client ")
    return None if is_unknown else judge.endpoint


def _names(served: Iterable[Served]) -> Iterator[str]:
    for one in served:
        if one.model or one.system_fingerprint:
            model = one.model or "a model without a name"
            yield (f"{model} ({one.system_fingerprint})" if one.system_fingerprint else model)


def _versions(result: ResultFile, made_from: Provenance | None) -> dict[str, str]:
    if made_from is None:
        return {}
    return {OWN_PACKAGE: str(result.run.version), **made_from.versions}


def _capture_days(leaves: Iterable[WrittenNode]) -> tuple[str, ...]:
    pages = [check.page for leaf in leaves for check in page_checks(leaf)]
    days = [page.captured_at[:10] for page in pages if page is not None and page.captured_at]
    return (min(days), max(days)) if days else ()
