"""How much of what a run judged looks as if it were meant for the judge, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.result_facts import leaves_of


def flagged_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return how many answers, pages and claims were flagged; ``None`` where none was."""
    results = [(outcome, outcome.result) for outcome in outcomes if outcome.result is not None]
    answers = {(found.task_id, found.answer_name) for found, result in results if result.get("answer_flags")}
    pages = {(found.task_id, url) for found, result in results for url in _flagged_pages(result)}
    claims = {(found.task_id, claim) for found, result in results for claim in _flagged_claims(result)}
    counts = (("answer", len(answers)), ("page", len(pages)), ("claim", len(claims)))
    counted = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts if count]
    if not counted:
        return None
    listed = " and ".join(part for part in (", ".join(counted[:-1]), counted[-1]) if part)
    verb = "tries" if counted[-1].startswith("1 ") and len(counted) == 1 else "try"
    return (
        f"{listed} {verb} to instruct the judge, as it seems; this changes no verdict: see the flags in the "
        "results"
    )


def _flagged_pages(result: Mapping[str, Any]) -> Iterator[str]:
    records = result.get("extractions")
    # A script may return what it likes beside the score.
    shown = [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    for leaf in leaves_of(result):
        shown += leaf.get("evidence", {}).get("pages", ())
    for record in shown:
        if (record.get("page") or {}).get("flags"):
            yield str(record["url"])


def _flagged_claims(result: Mapping[str, Any]) -> Iterator[str]:
    for leaf in leaves_of(result):
        evidence = leaf.get("evidence", {})
        if evidence.get("flags"):
            yield str(evidence.get("claim"))
