"""What moved a score, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from mind2web2.plugin import counted, dollars, line, print_table, with_sign
from mind2web2_trust.why.explanation import Explanation, LeafOfSide, MovedLeaf, ShareOfCause
from mind2web2_trust.why.shares import NAMES

_OTHER = (
    "Something else: the results differ, though answer, pages, script file and judge are the same. "
    "A script may read other files, the clock or a service."
)


def print_explanation(console: Console, found: Explanation) -> None:
    """Print the shares, the leaves behind them, and a sentence to copy."""
    if found.shares:
        rows = [_row(share) for share in found.shares]
        answers, tasks = counted(found.answers, "answer"), counted(found.tasks, "task")
        title = f"What moved partial completion, over {answers} to {tasks}"
        headings = ("cause", "share", "95% interval", "answers")
        print_table(console, title, headings, [*rows, _sum_row(found)])
    for text in (*_notes(found), *_leaf_lines(found), found.sentence):
        line(console, text)


def _row(share: ShareOfCause) -> tuple[str, ...]:
    known = "-" if share.low is None else f"{with_sign(share.low)} to {with_sign(share.high)}"
    return NAMES[share.cause], share.amount, known, str(share.answers)


def _sum_row(found: Explanation) -> tuple[str, ...]:
    return "together", with_sign(found.difference), "", ""


def _notes(found: Explanation) -> Iterator[str]:
    if any(share.cause == "other" for share in found.shares):
        yield _OTHER
    if found.missing:
        price = "" if found.missing_usd is None else f", about {dollars(found.missing_usd)}"
        yield (
            f"{counted(found.missing, 'judge reply')} not stored{price}: shares are within the "
            "given bounds. --ask asks for them."
        )
    for reason, count in found.gone.items():
        yield f"{counted(count, 'answer')} not evaluated again: {reason}."
    if found.left_out:
        yield f"Left out: {counted(found.left_out, 'answer')} that only one side has a score of."
    if found.rehearsals:
        yield f"Rehearsals of the changed scripts: {', '.join(found.rehearsals)}"


def _leaf_lines(found: Explanation) -> Iterator[str]:
    if found.leaves:
        yield "The leaves that moved the score most:"
    for leaf in found.leaves:
        cause = "a mixture" if leaf.cause is None else NAMES[leaf.cause]
        yield f"  {_place(leaf)}  {with_sign(leaf.effect)}  {cause}"
        yield from _both(leaf, found)
    for verb, there in (("added", "second"), ("removed", "first")):
        names = [_place(leaf) for leaf in found.one_sided if getattr(leaf, there) is not None]
        if names:
            more = len(names) - _MAX_NAMED
            such = ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
            yield f"{counted(len(names), 'leaf')} {verb}: {such}"


_MAX_NAMED = 5
_VERDICTS = {True: "passed", False: "did not pass", None: "not judged yet"}


def _place(leaf: MovedLeaf) -> str:
    side = leaf.second or leaf.first
    path = "" if side is None else side.path
    return f"{leaf.task}/{leaf.answer}/{path}"


def _both(leaf: MovedLeaf, found: Explanation) -> Iterator[str]:
    """Yield what differs between the two sides of a leaf."""
    if leaf.first is None or leaf.second is None:
        return
    for name, side, other in (
        (found.first, leaf.first, leaf.second),
        (found.second, leaf.second, leaf.first),
    ):
        verdict = _VERDICTS[side.passed]
        yield f"    {name}: {verdict}{''.join(_details(side, other))}"


def _details(side: LeafOfSide, other: LeafOfSide) -> Iterator[str]:
    if side.path != other.path:
        yield f"; leaf {side.path}"
    if side.claim:
        yield f'; "{side.claim}"'
    if side.pages != other.pages:
        yield f"; on {', '.join(side.pages) or 'the answer alone'}"
    if side.judge != other.judge:
        yield f"; by {side.judge or 'no judge'}"
