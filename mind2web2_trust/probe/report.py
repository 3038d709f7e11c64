"""The figures of a probe: how often the judge noticed a changed fact."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from mind2web2.plugin import (
    ChangedPages,
    PairedTest,
)
from mind2web2_trust.probe.asking import Reply, kinds_asked
from mind2web2_trust.probe.drafting import Draft
from mind2web2_trust.probe.edits import CONTROLS

log = logging.getLogger(__name__)

# Characters of the page on either side of a change that readers see.
_CONTEXT_CHARS = 160
_CUT_WORD_BEFORE = re.compile(r"^\S{1,30}(?=\s)")
_CUT_WORD_BEHIND = re.compile(r"(?<=\s)\S{1,30}$")


def probe_report(
    agent: str, judge: str, seed: int, draft: Draft, replies: Sequence[Reply]
) -> ChangedPages:
    """Return the figures of a judge's replies."""
    answered = [reply for reply in replies if reply.supported is not None]
    controls = [reply for reply in answered if reply.probe.change.kind in CONTROLS]
    probes = [reply for reply in answered if reply.probe.change.kind not in CONTROLS]
    survivors = [reply for reply in probes if reply.supported]
    alarms = [reply for reply in controls if not reply.supported]
    by_kind = {
        kind: _share([reply for reply in probes if reply.probe.change.kind == kind], False)
        for kind in kinds_asked(probes)
    }
    figures = {
        "agent": agent,
        "judge": judge,
        "seed": seed,
        "claims": len({reply.probe.case.claim.place for reply in probes}),
        "probes": len(probes),
        "noticed": _share(probes, False),
        "false_passes": _share(probes, True),
        "by_kind": by_kind,
        "false_alarms": _share(controls, False),
        "leaves": _by_leaf(probes),
        "discarded": dict(Counter(f"{each.kind}: {each.reason}" for each in draft.discarded)),
        "failed": len(replies) - len(answered),
        "survivors": tuple(map(_survivor, survivors)),
        "alarms": tuple(map(_survivor, alarms)),
    }
    return ChangedPages.model_validate(figures)


def compared(
    first: str,
    first_replies: Sequence[Reply],
    second: str,
    second_replies: Sequence[Reply],
) -> str:
    """Return one sentence on two judges that were asked the same probes."""
    others = {id(reply.probe): reply for reply in second_replies}
    verdicts = [
        (reply.supported, others[id(reply.probe)].supported)
        for reply in first_replies
        if reply.probe.change.kind not in CONTROLS
    ]
    only_first, only_second = verdicts.count((False, True)), verdicts.count((True, False))
    test = PairedTest.of([1.0] * only_first + [-1.0] * only_second)
    return (
        f"Of the same probes, only {first} noticed {only_first}, and only {second} noticed "
        f"{only_second} (McNemar's p {test.p_value or 1.0:.3f})."
    )


def _share(replies: Iterable[Reply], verdict: bool) -> object:
    """Return the share of replies with a verdict; claims on one page are not independent."""
    pages: dict[str, list[int]] = {}
    for reply in replies:
        counts = pages.setdefault(reply.probe.case.claim.url, [0, 0])
        counts[0] += reply.supported is verdict
        counts[1] += 1
    return ChangedPages.share_of([(hits, items) for hits, items in pages.values()])


def _by_leaf(replies: Iterable[Reply]) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for reply in replies:
        claim = reply.probe.case.claim
        own = counts.setdefault(f"{claim.task_id}/{claim.leaf}", [0, 0])
        own[0] += 1
        own[1] += bool(reply.supported)
    return {leaf: (probes, survived) for leaf, (probes, survived) in counts.items()}


def _survivor(reply: Reply) -> dict[str, object]:
    case, change = reply.probe.case, reply.probe.change
    start, end = change.places[0]
    shift = len(change.before) - (end - start)
    return {
        "task": case.claim.task_id,
        "answer": case.claim.answer_name.removesuffix(".md"),
        "leaf": case.claim.leaf,
        "kind": change.kind,
        "claim": case.claim.claim,
        "url": case.claim.url,
        "page_sha256": case.claim.page_sha256,
        "page_before": _around(case.page.text, start, end + shift),
        "page_after": _around(change.text, start, end),
        "reason_before": case.claim.reason,
        "reason_after": reply.reason,
    }


def _around(text: str, start: int, end: int) -> dict[str, str]:
    """Return the parts of an excerpt: a passage with whole words around it."""
    before = text[max(0, start - _CONTEXT_CHARS) : start]
    after = text[end : end + _CONTEXT_CHARS]
    if start > _CONTEXT_CHARS:
        before = _CUT_WORD_BEFORE.sub("", before)
    if end + _CONTEXT_CHARS < len(text):
        after = _CUT_WORD_BEHIND.sub("", after)
    return {"before": before, "changed": text[start:end], "after": after}
