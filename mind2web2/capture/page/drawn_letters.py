"""The scripts of a text for which the browser has a font."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mind2web2.capture.letters import letters_by_script
from mind2web2.capture.page.isolated_world import script

_LETTERS_A_SCRIPT = 3

Evaluate = Callable[[str, list[str]], Awaitable[Any]]


async def drawn_scripts(text: str, evaluate: Evaluate) -> dict[str, bool]:
    """Return the scripts of a text's letters, and whether the browser has a font for them.

    Args:
        evaluate: calls a function, given as JavaScript, with one argument.
    """
    letters = {
        name: "".join(letter for letter, _ in counts.most_common(_LETTERS_A_SCRIPT))
        for name, counts in letters_by_script(text).items()
    }
    drawn = await evaluate(script("drawn_letters"), list(letters.values()))
    return dict(zip(letters, drawn, strict=True))
