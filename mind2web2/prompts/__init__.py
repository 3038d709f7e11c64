"""Prompts: the instructions as text files, and blocks around untrusted text.

The text in a block cannot forge the block's delimiters.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple, Self

from mind2web2.utils.invisible_text import make_visible

# Scripts pass this as an additional instruction where they have nothing to add (eval-scripts.md).
NO_INSTRUCTION = "None"
_CODE_LENGTH = 20
_REMOVED = "[delimiter removed]"


@cache
def instructions(name: str) -> str:
    """Return the text of ``prompts/<name>.md``."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


class HashedText(str):
    """A long text that many requests share, with its SHA-256 and its JSON computed once."""

    _sha256: str | None = None
    _json: bytes | None = None
    _is_plain = False

    # Not a cached_property: until Python 3.12 all texts share its lock, so that the event loop
    # would wait for the thread that hashes a page.
    @property
    def sha256(self) -> str:
        """Return the hex digest over UTF-8."""
        if self._sha256 is None:
            self._sha256 = hashlib.sha256(self.encode()).hexdigest()
        return self._sha256

    def prepare(self) -> Self:
        """Return this text with everything computed that requests need."""
        _ = self.sha256, self.json_pieces
        return self

    @property
    def json_pieces(self) -> tuple[bytes, ...]:
        """Return the text as a JSON string in UTF-8, which is the pieces joined."""
        escaped = self._escaped()
        # Images, a megabyte each, are not kept twice: without anything to escape, encoding is
        # copying.
        return (b'"', self.encode(), b'"') if escaped is None else (escaped,)

    @property
    def json_bytes(self) -> int:
        """Return the length of the JSON string."""
        escaped = self._escaped()
        return len(self) + 2 if escaped is None else len(escaped)

    @property
    def memory_bytes(self) -> int:
        """Return how much memory the text and its prepared forms take."""
        return self.__sizeof__() + len(self._json or b"")

    def _escaped(self) -> bytes | None:
        """Return the JSON string, ``None`` where it is the text itself within quotes."""
        if self._json is None and not self._is_plain:
            encoded = json.dumps(self, ensure_ascii=False).encode()
            self._is_plain = self.isascii() and len(encoded) == len(self) + 2
            if not self._is_plain:
                self._json = encoded
        return self._json


class Block(NamedTuple):
    """A delimited text in its three parts; joined, they are the whole block."""

    opening: str
    text: str
    closing: str

    def __str__(self) -> str:
        return self.opening + self.text + self.closing


class BlockChain:
    """The blocks of one prompt, in order.

    A block's code is a hash over its own text and all blocks before it. No text can contain its own
    hash or that of anything that depends on it, so no author of an answer, page or claim can write
    a delimiter of their own block or of a later one; an earlier block's code is removed where it
    turns up. The same prompt always has the same codes, so that prompt caching and replay work.
    """

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self._codes: list[str] = []

    def block(self, name: str, text: str) -> Block:
        """Return the next block.

        A ``HashedText`` is returned as the same object unless it has to be cleaned.

        Invisible characters are replaced by marks, except in a shared text, where that was done
        before.
        """
        # Marks come before the search for codes, because letters with nothing between them may form
        # a code.
        hashed = text if isinstance(text, HashedText) else shown_text(text)
        for code in self._codes:
            if code in hashed:
                hashed = HashedText(hashed.replace(code, _REMOVED))
        self._state.update(f"{name}\n{hashed.sha256}\n".encode())
        code = self._state.hexdigest()[:_CODE_LENGTH]
        self._codes.append(code)
        return Block(f"<<{name} {code}>>\n", hashed, f"\n<<end of {name} {code}>>\n")


# Task and answer are the same in all questions on an answer.
@lru_cache(maxsize=128)
def shown_text(text: str) -> HashedText:
    """Return a text as its block shows it, but for other blocks' codes."""
    return HashedText(make_visible(encodable(text)))


def encodable(text: str) -> str:
    """Return the text with surrogates, which no provider accepts, as question marks.

    ``as_unicode_text`` writes them differently. The question marks stay here, because the keys of
    stored judgments depend on them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
