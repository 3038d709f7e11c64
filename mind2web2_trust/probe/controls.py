"""Changes that leave a claim's support: the verdict must stay."""

from __future__ import annotations

from random import Random

from mind2web2_trust.probe.edits import Change, Edit, apply_edits
from mind2web2_trust.probe.passages import JudgedPage


def reword(page: JudgedPage, random: Random) -> Change | None:
    """Introduce the quoted sentence by words that change nothing."""
    quoted = page.quoted
    if not quoted:
        return None
    opening = random.choice(("Note: ", "For the record: ", "In short: "))
    start = quoted[0].start
    return apply_edits("reworded", page, [Edit(start, start, opening)])


def change_white_space(page: JudgedPage, random: Random) -> Change | None:  # noqa: ARG001 (nothing to choose)
    """Put an empty line before and after the quoted sentences."""
    quoted = page.quoted
    if not quoted:
        return None
    start, end = quoted[0].start, quoted[-1].end
    return apply_edits("white space", page, [Edit(start, start, "\n\n"), Edit(end, end, "\n\n")])
