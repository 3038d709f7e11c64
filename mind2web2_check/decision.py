"""Which forms of marks a report uses: evidence for and against each, added up."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from mind2web2_check.candidates import Candidate, Form, weight_of
from mind2web2_check.labels import BY_NAME
from mind2web2_check.source_lists import SourceLists

_THRESHOLD = 3.0
_MOST_BY_CHANCE = 0.8
_FAMILY_SHARE, _FAMILY = 0.8, 4.0
_ONE_MARK = -3.0


class Evidence(BaseModel):
    """A row of the table: the logarithms of the odds that a form cites, and their sum.

    Args:
        look: by how it looks.
        marks: by its numbers with an entry, which chance also hits, and those without.
        share: by how much of the list it cites.
        family: by other forms of its kind that are sure.
    """

    form: str
    example: str
    with_entry: int
    without_entry: int
    look: float
    marks: float
    share: float
    family: float = 0.0
    total: float
    is_taken: bool


def decide(candidates: Iterable[Candidate], lists: SourceLists) -> dict[Form, Evidence]:
    """Return the evidence for each form of mark."""
    by_form: dict[Form, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if not candidate.other:
            by_form[candidate.form].append(candidate)
    table = {form: _evidence(form, marks, lists) for form, marks in by_form.items()}
    sure = {form.look for form, row in table.items() if row.is_taken}
    for form, row in table.items():
        marks = row.with_entry + row.without_entry
        if not row.is_taken and form.look in sure and row.with_entry >= _FAMILY_SHARE * marks:
            total = row.total + _FAMILY - min(row.share, 0.0) - _ONE_MARK * (marks == 1)
            table[form] = row.model_copy(
                update={"family": _FAMILY, "total": total, "is_taken": total >= _THRESHOLD}
            )
    return table


def _evidence(form: Form, marks: Sequence[Candidate], lists: SourceLists) -> Evidence:
    labels = lists.labels
    is_sure = form.look != "plain" and BY_NAME[form.look].is_sure
    cited = {name for mark in marks for name in mark.labels if lists.has(name)}
    known = sum(all(map(lists.has, mark.labels)) for mark in marks)
    unknown = len(marks) - known
    chance = min(_MOST_BY_CHANCE, math.log(1 + len(labels)) / math.log(101))
    by_marks = known * math.log(0.99 / max(chance, 0.05))
    share = len(cited) / len(labels) if labels else 0.0
    by_share = 2 * share
    if not is_sure:
        by_marks += unknown * math.log(0.02 / (1 - chance))
        by_share = 5 * (share - 0.25)
    look = weight_of(form)
    alone = _ONE_MARK if len(marks) == 1 and look < _THRESHOLD else 0.0
    total = look + by_marks + by_share + alone
    return Evidence(
        form=" ".join(filter(None, form)),
        example=marks[0].mark,
        with_entry=known,
        without_entry=unknown,
        look=look,
        marks=by_marks + alone,
        share=by_share,
        total=total,
        is_taken=total >= _THRESHOLD,
    )
