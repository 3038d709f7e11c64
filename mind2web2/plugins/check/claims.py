"""The claims of statements: which a model is asked about together, and how its reply counts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

from mind2web2.plugins.check.statements import Statement

PROMPT = (Path(__file__).parent / "prompts" / "claims.md").read_text(encoding="utf-8")
MAX_STATEMENTS = 16
_MEAN_STATEMENTS = 8
_MAX_CLAIMS = 8
_CONTEXT = 2
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class StatementClaims(BaseModel):
    """What a model makes of one statement."""

    number: int
    checkable: bool = True
    claims: list[str] = Field(default_factory=list)


class ChunkClaims(BaseModel):
    """What a model makes of the statements of a chunk."""

    statements: list[StatementClaims] = Field(default_factory=list)


@dataclass(frozen=True)
class Chunk:
    """Statements that a model is asked about together.

    Args:
        first: the number of the first of them in the report, from 0.
        text: as the model is shown them.
    """

    first: int
    statements: tuple[Statement, ...]
    text: str


def chunks_of(statements: Sequence[Statement]) -> Iterator[Chunk]:
    """Yield the statements in chunks whose bounds follow from the statements near them.

    If one statement of a report changes, then only the chunks around it change.
    """
    first = 0
    for number, statement in enumerate(statements, start=1):
        digest = hashlib.sha256(statement.text.encode("utf-8", "replace")).digest()
        is_bound = digest[0] % _MEAN_STATEMENTS == 0
        if is_bound or number - first == MAX_STATEMENTS or number == len(statements):
            yield _chunk(statements, first, number)
            first = number


def _chunk(statements: Sequence[Statement], first: int, end: int) -> Chunk:
    before = statements[max(0, first - _CONTEXT) : first]
    lines = [f"Before: {statement.plain}" for statement in before]
    lines += [
        f"{number}. {statement.plain}"
        for number, statement in enumerate(statements[first:end], start=1)
    ]
    return Chunk(first, tuple(statements[first:end]), "\n".join(lines))


def claims_of(chunk: Chunk, reply: ChunkClaims) -> list[StatementClaims]:
    """Return the claims of each statement.

    One that the model left out, or changed, is its own claim.
    """
    by_number = {entry.number: entry for entry in reply.statements}
    found = []
    for number, statement in enumerate(chunk.statements, start=1):
        entry = by_number.get(number) or StatementClaims(number=number)
        claims = [" ".join(claim.split()) for claim in entry.claims if claim.strip()]
        claims = list(dict.fromkeys(claims))[:_MAX_CLAIMS]
        if not claims or not all(_is_of(claim, chunk.text) for claim in claims):
            claims = [statement.plain]
        # A statement with a source is checked in any case.
        checkable = entry.checkable or bool(statement.sources)
        found.append(
            StatementClaims(number=chunk.first + number - 1, checkable=checkable, claims=claims)
        )
    return found


def _is_of(claim: str, text: str) -> bool:
    """Tell whether all numbers of a claim are in the text that it was made from."""
    return set(_NUMBER.findall(claim)) <= set(_NUMBER.findall(text))
