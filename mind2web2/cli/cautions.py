"""What a user should know of a run's results before trusting its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mind2web2.answer_evaluation import AnswerOutcome


def cautions(outcomes: Sequence[AnswerOutcome]) -> list[str]:
    """Return, one line each, what may make scores lower than the answers deserve."""
    pages: set[tuple[str, str]] = set()
    found: list[str] = []
    for outcome in outcomes:
        if outcome.result is None:
            continue
        leaves = list(_leaves(outcome.result))
        pages |= {(outcome.task_id, url) for leaf in leaves for url in _pages_not_had(leaf)}
        found += _of_answer(outcome, leaves)
    if pages:
        tasks = Counter(task for task, _ in pages)
        listed = ", ".join(f"{task} {count}" for task, count in sorted(tasks.items()))
        found.insert(
            0, f"cited pages that could not be had: {len(pages)} ({listed}); claims on them count as failed"
        )
    return found


def _of_answer(outcome: AnswerOutcome, leaves: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name = f"{outcome.task_id}/{outcome.answer_name}"
    result = outcome.result or {}
    errors = [leaf["id"] for leaf in leaves if leaf.get("evidence", {}).get("decided_by") == "error"]
    if errors:
        yield f"{name}: failed because of an error, see its log: {', '.join(errors)}"
    if result.get("undecided_leaves"):
        yield f"{name}: never decided by the script, counted 0: {', '.join(result['undecided_leaves'])}"
    if result.get("doubts"):
        yield f"{name}: judged anew next time, as this machine may be to blame: {'; '.join(result['doubts'])}"


def _leaves(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    # A script may return what it likes beside the score.
    breakdown = result.get("eval_breakdown")
    stack = [part.get("verification_tree") for part in breakdown or () if isinstance(part, dict)]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        if not node.get("children"):
            yield node
        stack.extend(node.get("children") or ())


def _pages_not_had(leaf: Mapping[str, Any]) -> Iterator[str]:
    for check in leaf.get("evidence", {}).get("pages", ()):
        if check["outcome"] == "unavailable":
            yield check["url"]
