"""Changes of a page: one that takes a claim's support away, or a control that leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from mind2web2_trust.probe.controls import change_white_space, reword
from mind2web2_trust.probe.edits import Change, Discarded, Kind
from mind2web2_trust.probe.passages import JudgedPage
from mind2web2_trust.probe.sentence_changes import (
    change_negation,
    remove_passage,
)
from mind2web2_trust.probe.value_changes import change_date, change_name, change_number

_Maker = Callable[[JudgedPage, Random], Change | Discarded | None]
_MAKERS: Mapping[Kind, _Maker] = {
    "number": change_number,
    "date": change_date,
    "name": change_name,
    "negation": change_negation,
    "passage": remove_passage,
    "reworded": reword,
    "white space": change_white_space,
}


def change_page(page: JudgedPage, kind: Kind, random: Random) -> Change | Discarded | None:
    """Change all places of a page that support the claim.

    ``None`` if the kind does not apply to it.
    """
    return _MAKERS[kind](page, random)
