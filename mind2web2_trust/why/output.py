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


def print_explanation(console: PlainConsole, found: Explanation, *, is_asked: bool) -> None:
    """Print the shares, the leaves behind them, and a sentence to copy."""
    if found.shares:
        rows = [_row(share) for share in found.shares]
        answers, tasks = counted(found.answers, "answer"), counted(found.tasks, "task")
        title = f"What moved partial completion, over {answers} to {tasks}"
        headings = ("cause", "share", "95% interval", "answers")
        console.print_table(title, headings, [*rows, _sum_row(found)])
    for text in (*_notes(found, is_asked=is_asked), *_leaf_lines(found), found.sentence):
        console.print_line(text)


def _row(share: ShareOfCause) -> tuple[str, ...]:
    known = (
        "-"
        if share.low is None
        else f"{number(share.low, is_difference=True)} to {number(share.high, is_difference=True)}"
    )
    return share.name, share.amount, known, str(share.answers)


def _sum_row(found: Explanation) -> tuple[str, ...]:
    return "together", number(found.difference, is_difference=True), "", ""


def _notes(found: Explanation, *, is_asked: bool) -> Iterator[str]:
    if any(share.cause == "other" for share in found.shares):
        yield _OTHER
    if found.missing:
        price = "" if found.missing_usd is None else f", about {dollars(found.missing_usd)}"
        yield (
            f"{counted(found.missing, 'judge reply')} not stored, as far as the scripts come "
            f"without them{price}: shares are within the given bounds."
            f"{'' if is_asked else ' --ask asks for them.'}"
        )
    for reason, count in found.gone.items():
        yield f"{counted(count, 'answer')} not evaluated again: {reason}."
    if found.left_out:
        yield f"Left out: {counted(found.left_out, 'answer')} that only one side has a score of."
    if found.rehearsals:
        yield f"Rehearsals of the changed scripts: {', '.join(found.rehearsals)}"


def _leaf_lines(found: Explanation) -> Iterator[str]:
    judged = [leaf for leaf in found.leaves if leaf.effect is not None]
    others = [leaf for leaf in found.leaves if leaf.effect is None]
    for title, leaves in (("that moved the score most", judged), ("not judged yet", others)):
        if leaves:
            yield f"Leaves {title}:"
        for leaf in leaves:
            cause = "several causes" if leaf.cause is None else NAMES[leaf.cause]
            shown = (
                ""
                if leaf.effect is None
                else f"  {number(leaf.effect, is_difference=True)}  {cause}"
            )
            yield f"  {leaf.task}/{leaf.answer}/{leaf.second.path}{shown}"
            yield from _both(leaf, found)
    for verb, places in (("added", found.added), ("removed", found.removed)):
        if places:
            yield f"{counted(len(places), 'leaf')} {verb}: {', '.join(places[:_PLACES_SHOWN])}"


_VERDICTS = {True: "passed", False: "did not pass", None: "not judged yet"}


def _both(leaf: MovedLeaf, found: Explanation) -> Iterator[str]:
    """Yield what differs between the two sides of a leaf."""
    for name, side, other in (
        (found.first, leaf.first, leaf.second),
        (found.second, leaf.second, leaf.first),
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
