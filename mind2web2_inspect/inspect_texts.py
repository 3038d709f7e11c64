"""The evidence of a result as markdown, for tools that show one text beside a score."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.plugin import Evidence, ResultFile, Vote, WrittenNode


def explain_leaves(result: ResultFile) -> str:
    """Return a list of all leaves with claim, pages, reasons and quotations."""
    return "\n".join(line for leaf in result.leaves() for line in _lines(leaf))


def _lines(leaf: WrittenNode) -> Iterator[str]:
    gate = " (gate)" if leaf.critical else ""
    claim = leaf.grounds.claim or leaf.desc
    yield f"- **{leaf.status}** `{leaf.id}`{gate}: {_one_line(claim)}"
    yield from (f"    - {_one_line(text)}" for text in _reasons(leaf.grounds))


def _reasons(evidence: Evidence) -> Iterator[str]:
    if evidence.reason:
        yield evidence.reason
    if evidence.votes:
        yield f"the answer: {_why(evidence.votes)}"
    for check in evidence.pages:
        outcome = check.outcome.replace("_", " ")
        reason = check.reason or _why(check.votes)
        yield f"{check.url}: {outcome}. {reason}"


def _why(votes: tuple[Vote, ...]) -> str:
    if not votes:
        return ""
    last = votes[-1]
    quotation = "" if last.quote is None else f' "{last.quote.text}"'
    return (last.declined or last.reasoning) + quotation


def _one_line(text: str) -> str:
    return " ".join(text.split())
