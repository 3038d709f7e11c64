"""The causes of a difference as text."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.plugin import (
    PlainConsole,
    counted,
    dollars,
    number,
)
from mind2web2_trust.why.explanation import Explanation, LeafOfSide, MovedLeaf, ShareOfCause
from mind2web2_trust.why.shares import NAMES

_PLACES_SHOWN = 20
_OTHER = (
    "Something else: the results differ, though answer, pages, script file and judge are the same. "
    "A script may read other files, the clock or a service."
)


def print_explanation(console: PlainConsole, explanation: Explanation, spent: str) -> None:
    """Print the shares, the leaves behind them, and a sentence to copy.

    Args:
        spent: what was asked and what it cost; empty where nothing was to be asked.
    """
    if explanation.shares:
        rows = [_row(share) for share in explanation.shares]
        answers, tasks = counted(explanation.answers, "answer"), counted(explanation.tasks, "task")
        title = f"What moved partial completion, over {answers} to {tasks}"
        headings = ("cause", "share", "95% interval", "answers")
        console.print_table(title, headings, [*rows, _sum_row(explanation)])
    for text in (
        *_notes(explanation, spent),
        *_leaf_lines(explanation),
        explanation.sentence,
    ):
        console.print_line(text)


def _row(share: ShareOfCause) -> tuple[str, ...]:
    known = (
        "-"
        if share.low is None
        else f"{number(share.low, is_difference=True)} to {number(share.high, is_difference=True)}"
    )
    return share.name, share.amount, known, str(share.answers)


def _sum_row(explanation: Explanation) -> tuple[str, ...]:
    return "together", number(explanation.difference, is_difference=True), "", ""


def _notes(explanation: Explanation, spent: str) -> Iterator[str]:
    if any(share.cause == "other" for share in explanation.shares):
        yield _OTHER
    if explanation.missing:
        about = "at least" if explanation.is_least else "about"
        price = dollars(explanation.missing_usd)
        missing = counted(explanation.missing, "judge reply")
        yield f"Missing: {about} {missing} ({price}). The shares are within the bounds above."
        if not spent:
            yield "Nothing was asked. --ask without --estimate asks for them."
    if spent:
        yield f"{spent}."
    for reason, count in explanation.gone.items():
        yield f"{counted(count, 'answer')} not evaluated again: {reason}."
    if explanation.left_out:
        yield f"Left out: {counted(explanation.left_out, 'answer')} that only one side has a score of."
    if explanation.rehearsals:
        yield f"Rehearsals of the changed scripts: {', '.join(explanation.rehearsals)}"


def _leaf_lines(explanation: Explanation) -> Iterator[str]:
    judged = [leaf for leaf in explanation.leaves if leaf.effect is not None]
    others = [leaf for leaf in explanation.leaves if leaf.effect is None]
    for title, leaves in (("that moved the score most", judged), ("not judged yet", others)):
        if leaves:
            yield f"Leaves {title}:"
        for leaf in leaves:
            cause = "several causes" if leaf.cause is None else NAMES[leaf.cause]
            effect = number(leaf.effect, is_difference=True)
            yield f"  {leaf.task}/{leaf.answer}/{leaf.second.path}  {effect}  {cause}"
            yield from _both(leaf, explanation)
    for verb, places in (("added", explanation.added), ("removed", explanation.removed)):
        if places:
            yield f"{counted(len(places), 'leaf')} {verb}: {', '.join(places[:_PLACES_SHOWN])}"


_VERDICTS = {True: "passed", False: "did not pass", None: "not judged yet"}


def _both(leaf: MovedLeaf, explanation: Explanation) -> Iterator[str]:
    """Yield what differs between the two sides of a leaf."""
    for name, side, other in (
        (explanation.first, leaf.first, leaf.second),
        (explanation.second, leaf.second, leaf.first),
    ):
        yield f"    {name}: {_VERDICTS[side.passed]}{''.join(_details(side, other))}"


def _details(side: LeafOfSide, other: LeafOfSide) -> Iterator[str]:
    if side.path != other.path:
        yield f"; leaf {side.path}"
    if side.claim:
        yield f'; "{side.claim}"'
    if side.pages != other.pages:
        yield f"; on {', '.join(side.pages) or 'the answer alone'}"
    if side.judge != other.judge:
        yield f"; by {side.judge}"
