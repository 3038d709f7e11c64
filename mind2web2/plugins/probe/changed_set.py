"""The labelled set on changed pages: the same kinds of change as in a probe."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from random import Random

from mind2web2.judge_check.labelled_set import (
    LabelledClaim,
    LabelledPage,
    LabelledSet,
    shipped_set,
)
from mind2web2.judge_check.other_cases import OtherCases
from mind2web2.plugins.probe.changes import change_page
from mind2web2.plugins.probe.edits import CHANGES, CONTROLS, Change, Kind
from mind2web2.plugins.probe.passages import JudgedPage


class ChangedSet:
    """Adds ``--changed_pages`` to ``check-judge``."""

    def add_options(self, parser: argparse._ActionsContainer) -> None:
        """Add the option."""
        parser.add_argument(
            "--changed_pages",
            action="store_true",
            help="ask the set's true claims on pages whose facts were changed, as probe changes "
            "them",
        )

    def cases(self, options: argparse.Namespace) -> OtherCases | None:
        """Return the cases on changed pages, ``None`` without the option."""
        if not options.changed_pages:
            return None
        return OtherCases(changed_set(shipped_set()), is_recorded=False)


CHECK = ChangedSet()


def changed_set(labelled: LabelledSet) -> LabelledSet:
    """Return the true claims of a set on changed pages: false after a change, true in a control."""
    counts: Counter[Kind] = Counter()
    pages: dict[str, LabelledPage] = {}
    claims: list[LabelledClaim] = []
    for claim in labelled.claims:
        for kinds in (CHANGES, CONTROLS):
            change = _change(labelled, claim, sorted(kinds, key=lambda kind: counts[kind]))
            if change is not None:
                counts[change.kind] += 1
                # The number tells the judge nothing.
                url = f"{claim.urls[0]}?page={len(pages)}"
                pages[url] = LabelledPage(text=change.text)
                claims.append(_case(claim, change, url))
    order: list[str] = [*CHANGES, *CONTROLS]
    claims.sort(key=lambda case: order.index(case.category))
    return labelled._replace(pages=pages, claims=tuple(claims), forms=(), is_whole=False)


def _change(labelled: LabelledSet, claim: LabelledClaim, kinds: Sequence[Kind]) -> Change | None:
    """Return the first possible change of a true claim whose one page says it in its text."""
    page = labelled.pages.get(claim.urls[0]) if len(claim.urls) == 1 else None
    if page is None or page.picture is not None or not claim.right or not claim.shows:
        return None
    passage = claim.shows[0]
    start = page.text.find(passage)
    if start < 0:
        return None
    judged = JudgedPage(claim.question, page.text, start, start + len(passage), claim.urls[0])
    random = Random(claim.id)
    made = (change_page(judged, kind, random) for kind in kinds)
    return next((change for change in made if isinstance(change, Change)), None)


def _case(claim: LabelledClaim, change: Change, url: str) -> LabelledClaim:
    is_control = change.kind in CONTROLS
    return claim.model_copy(
        update={
            "id": f"{claim.pair}-{change.kind.replace(' ', '-')}",
            "category": change.kind,
            "right": is_control,
            "urls": (url,),
            "supported_by": (url,) if is_control else (),
            "shows": (),
        }
    )
