"""A markdown report without what its readers do not see; places stay the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\n(?:[\w-]+:.*\n|[ \t]+.*\n|- .*\n|\n)*?(?:---|\.\.\.)[ \t]*(?=\n|\Z)"
)
_OPENING = re.compile(
    r"(?P<code>^(?:`{3,}+|~{3,}+)|`++)"
    r"|(?P<comment><!--)"
    r"|<(?P<hidden>span|div|p)\b[^<>]*\b(?:display:\s*none|visibility:\s*hidden|hidden)\b[^<>]*>"
    r"|</?(?:details|summary|div|span|section|article|center|font|p|br|u|small|aside)\b[^<>\n]*>",
    re.IGNORECASE | re.MULTILINE,
)


def visible(text: str) -> str:
    """Return a text of the same length without front matter, comments and hidden parts."""
    pieces, position = [], 0
    for start, end in _unseen(text):
        pieces += [text[position:start], re.sub(r"[^\n]", " ", text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _unseen(text: str) -> Iterator[tuple[int, int]]:
    front = _FRONT_MATTER.match(text)
    position = front.end() if front else 0
    if front:
        yield front.span()
    without_end: set[str] = set()
    while opening := _OPENING.search(text, position):
        position = opening.end()
        closing = opening["code"] or ("-->" if opening["comment"] else f"</{opening['hidden']}")
        is_pair = any(opening.groupdict().values()) and closing not in without_end
        end = text.find(closing, position) if is_pair else position
        if end < 0:
            without_end.add(closing)
            continue
        position = text.find(">", end) + 1 if opening["hidden"] and is_pair else end
        position = max(position, end + len(closing)) if is_pair else position
        if not opening["code"]:
            yield opening.start(), position
