"""Texts and images of pages that a script's process refers to, kept for it in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mind2web2.errors import EvalScriptError
from mind2web2.prompts import HashedText

# Several hundred pages with their screenshots.
_MAX_CHARS = 2 * 1024**3


class HeldTexts:
    """Keeps each text as long as something that came with it is in use in the script's process."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._holds: dict[int, tuple[str, ...]] = {}
        self._texts: dict[str, HashedText] = {}
        self._uses: dict[str, int] = {}
        self._chars = 0

    def hold(self, texts: Sequence[HashedText]) -> int:
        """Keep texts, and return the number by which they are let go.

        Raises:
            EvalScriptError: there are more than any script uses.
        """
        kept = {text.sha256: text for text in texts}
        new = [text for sha256, text in kept.items() if sha256 not in self._texts]
        added = sum(map(len, new))
        if self._chars + added > _MAX_CHARS:
            raise EvalScriptError(
                f"its script keeps pages of more than {_MAX_CHARS // 1024**2} MB: does it store every page "
                "that it is given?"
            )
        self._chars += added
        for sha256, text in kept.items():
            self._texts.setdefault(sha256, text)
            self._uses[sha256] = self._uses.get(sha256, 0) + 1
        number = next(self._numbers)
        self._holds[number] = tuple(kept)
        return number

    def release(self, number: int) -> None:
        """Let go what was kept under a number, as far as nothing else needs it."""
        for sha256 in self._holds.pop(number, ()):
            self._uses[sha256] -= 1
            if not self._uses[sha256]:
                del self._uses[sha256]
                self._chars -= len(self._texts.pop(sha256))

    def text(self, reference: Mapping[str, Any]) -> HashedText:
        """Return the text that a script's process refers to.

        Raises:
            KeyError: it has no such text.
        """
        sha256 = reference["sha256"]
        if sha256 not in self._holds[reference["held"]]:
            raise KeyError(sha256)
        return self._texts[sha256]
