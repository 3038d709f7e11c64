"""The evidence of a result as markdown, for tools that show one text beside a score."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.plugin import (
    ResultFile,
    WrittenNode,
)


def explain_leaves(result: ResultFile) -> str:
    """Return a list of all leaves with claim, pages, reasons and quotations."""
    return "\n".join(line for leaf in result.leaves() for line in _lines(leaf))


def _lines(leaf: WrittenNode) -> Iterator[str]:
    gate = " (gate)" if leaf.critical else ""
    claim = leaf.grounds.claim or leaf.desc
    yield f"- **{leaf.status}** `{leaf.id}`{gate}: {_one_line(claim)}"
    yield from (f"    - {_one_line(text)}" for text in _reasons(leaf))


def _reasons(leaf: WrittenNode) -> Iterator[str]:
    evidence = leaf.grounds
    if evidence.reason:
        yield evidence.reason
    for vote in evidence.votes[-1:]:
        yield f"the answer: {vote}"
    for check in evidence.pages:
        outcome = check.outcome.replace("_", " ")
        reason = check.reason or "".join(map(str, check.votes[-1:]))
        yield f"{check.url}: {outcome}. {reason}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
