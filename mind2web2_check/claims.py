"""The claims of statements: which a model is asked about together, and how its reply counts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

from mind2web2_check.statements import Statement

PROMPT = (Path(__file__).parent / "prompts" / "claims.md").read_text(encoding="utf-8")
MAX_STATEMENTS = 16
_MEAN_STATEMENTS = 8
_CONTEXT = 2
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# Chinese, Japanese and Korean have no spaces between words: each character counts as one.
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\d_]+")
# So many letters are the same in most forms of a word.
_STEM_CHARS = 5
_LEAST_SHARE = 0.5
AGAIN = (
    "An earlier reply did not fit these statements: {}. Give each number exactly one entry, and "
    "keep all numbers and names of a statement in its own claims."
)


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
        before: the statements that precede them.
    """

    first: int
    before: tuple[Statement, ...]
    statements: tuple[Statement, ...]

    @property
    def text(self) -> str:
        """Return the statements as the model is shown them."""
        lines = [f"Before: {statement.said}" for statement in self.before]
        lines += [
            f"{number}. {statement.said}"
            for number, statement in enumerate(self.statements, start=1)
        ]
        return "\n".join(lines)


def chunks_of(statements: Sequence[Statement]) -> Iterator[Chunk]:
    """Yield the statements in chunks whose bounds follow from the statements near them.

    If one statement of a report changes, then only the chunks around it change.
    """
    first = 0
    for number, statement in enumerate(statements, start=1):
        digest = hashlib.sha256(statement.text.encode("utf-8", "replace")).digest()
        is_bound = digest[0] % _MEAN_STATEMENTS == 0
        if is_bound or number - first == MAX_STATEMENTS or number == len(statements):
            before = statements[max(0, first - _CONTEXT) : first]
            yield Chunk(first, tuple(before), tuple(statements[first:number]))
            first = number


def fitting(chunk: Chunk, reply: ChunkClaims) -> dict[int, StatementClaims]:
    """Return the entries that fit their statements, by number; none if the numbers are others."""
    by_number = {entry.number: entry for entry in reply.statements}
    if sorted(entry.number for entry in reply.statements) != list(chunk_numbers(chunk)):
        return {}
    return {number: entry for number, entry in by_number.items() if _fits(chunk, entry)}


def chunk_numbers(chunk: Chunk) -> range:
    """Return the numbers of the statements as the model is shown them."""
    return range(1, len(chunk.statements) + 1)


def claims_of(chunk: Chunk, found: Mapping[int, StatementClaims]) -> list[StatementClaims]:
    """Return the claims of each statement. One without an entry that fits is its own claim."""
    statements = []
    for number, statement in enumerate(chunk.statements, start=1):
        entry = found.get(number) or StatementClaims(number=number)
        claims = filter(None, (" ".join(claim.split()) for claim in entry.claims))
        statements.append(
            StatementClaims(
                number=chunk.first + number - 1,
                # A statement with a source is checked in any case.
                checkable=entry.checkable or bool(statement.sources),
                claims=list(dict.fromkeys(claims)) or [statement.said],
            )
        )
    return statements


def _fits(chunk: Chunk, entry: StatementClaims) -> bool:
    """Tell whether claims say what their statement says, by its numbers, names and words."""
    if not any(entry.claims):
        return True
    earlier = [*chunk.before, *chunk.statements[: entry.number]]
    statement = earlier[-1].plain
    said = " ".join(entry.claims)
    context = " ".join(each.said for each in earlier)
    numbers = _numbers(said)
    if not _numbers(statement) <= numbers <= _numbers(context):
        return False
    words = [_stem(word) for word in _WORD.findall(statement)]
    # The first word has a capital letter in any case.
    names = {_stem(word) for word in _WORD.findall(statement)[1:] if word[0].isupper()}
    kept = {_stem(word) for word in _WORD.findall(said)}
    return names <= kept and sum(word in kept for word in words) >= _LEAST_SHARE * len(words)


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _stem(word: str) -> str:
    return word[:_STEM_CHARS].casefold()
