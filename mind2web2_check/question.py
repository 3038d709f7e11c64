"""The question that a report answers; a cited page that has it may be about a benchmark."""

from __future__ import annotations

import re

from mind2web2_check.blocks import blocks_of

_LABEL = re.compile(r"\W*(?:question|query|prompt|task|问题|問題)\W*[:：]\W*", re.IGNORECASE)
_ASKED = re.compile(r"[^.!?。！？]{1,400}[?？]")
_MAX_CHARS = 4000


def question_of(report: str) -> str:
    """Return a report's title and the first question in it."""
    start = report[:_MAX_CHARS]
    blocks = blocks_of(start)
    texts = [start[block.start : block.end] for block in blocks]
    labelled = (_LABEL.sub("", text) for text in texts if _LABEL.match(text))
    asked = (match[0] for text in texts if (match := _ASKED.search(text)))
    headings = (text for block, text in zip(blocks, texts, strict=True) if block.kind == "heading")
    found = [next(labelled, "") or next(asked, ""), next(headings, "")]
    return " ".join(" ".join(found).split())
