"""The figures of a probe: how often the judge noticed a changed fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.plugins.probe.asking import Draft, Reply, kinds_asked
from mind2web2.plugins.probe.changes import CONTROLS
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate, binomial_p_value
from mind2web2.utils.files import write_whole

# Characters of the page on either side of a change that readers see.
_CONTEXT_CHARS = 160
REPORT_NAME = "probe.json"


class Share(BaseModel):
    """A share with its 95% interval, in which pages are the units that vary.

    Args:
        count: the replies that the share is of.
    """

    model_config = ConfigDict(frozen=True)

    count: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Excerpt(BaseModel):
    """A passage of a page, in three parts: the changed words between what surrounds them."""

    model_config = ConfigDict(frozen=True)

    before: str
    changed: str
    after: str

    def __str__(self) -> str:
        """Return the passage in one line, with the changed words in square brackets."""
        return " ".join(f"{self.before}[{self.changed}]{self.after}".split())


class Survivor(BaseModel):
    """A verdict that stayed although the page no longer supports the claim, or a false alarm of a control.

    Args:
        page_before: the passage as the page had it.
        page_after: the same passage after the change.
        reason_before: the judge's reasoning on the page as it was.
        reason_after: the judge's reasoning on the changed page.
    """

    model_config = ConfigDict(frozen=True)

    place: str
    kind: str
    claim: str
    url: str
    page_before: Excerpt
    page_after: Excerpt
    reason_before: str
    reason_after: str


class ProbeReport(BaseModel):
    """All figures of a probe; ``mind2web2 probe --json`` prints this model.

    Args:
        noticed: share of probes in which the verdict changed.
        false_passes: the rest: the share of unsupported claims that the judge would pass.
        by_kind: the noticed share of each kind of change.
        false_alarms: share of controls in which the verdict changed, although nothing relevant did.
        leaves: probes and survivors of each leaf of the rubric, as ``task/leaf``.
        discarded: changes left out, by reason.
        failed: probes on which the judge failed; no figure counts them.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    judge: str
    seed: int
    claims: int
    probes: int
    noticed: Share
    false_passes: Share
    by_kind: dict[str, Share]
    false_alarms: Share
    leaves: dict[str, tuple[int, int]]
    discarded: dict[str, int]
    failed: int
    survivors: tuple[Survivor, ...]
    alarms: tuple[Survivor, ...]

    def write(self, folder: Path) -> Path:
        """Write the report beside the stored replies and return its path."""
        path = folder / REPORT_NAME
        write_whole(path, self.model_dump_json(indent=1).encode())
        return path


def probe_report(
    agent: str, judge: str, seed: int, draft: Draft, replies: Sequence[Reply]
) -> ProbeReport:
    """Return the figures of a judge's replies."""
    answered = [reply for reply in replies if reply.supported is not None]
    controls = [reply for reply in answered if reply.probe.change.kind in CONTROLS]
    probes = [reply for reply in answered if reply.probe.change.kind not in CONTROLS]
    survivors = [reply for reply in probes if reply.supported]
    alarms = [reply for reply in controls if not reply.supported]
    by_kind = {
        kind: _share(
            (reply, not reply.supported) for reply in probes if reply.probe.change.kind == kind
        )
        for kind in kinds_asked(probes)
    }
    return ProbeReport(
        agent=agent,
        judge=judge,
        seed=seed,
        claims=len({reply.probe.case.claim.place for reply in probes}),
        probes=len(probes),
        noticed=_share((reply, not reply.supported) for reply in probes),
        false_passes=_share((reply, bool(reply.supported)) for reply in probes),
        by_kind=by_kind,
        false_alarms=_share((reply, not reply.supported) for reply in controls),
        leaves=_by_leaf(probes),
        discarded=dict(Counter(f"{each.kind}: {each.reason}" for each in draft.discarded)),
        failed=len(replies) - len(answered),
        survivors=tuple(map(_survivor, survivors)),
        alarms=tuple(map(_survivor, alarms)),
    )


def compared(
    first: str,
    first_replies: Sequence[Reply],
    second: str,
    second_replies: Sequence[Reply],
) -> str:
    """Return one sentence on two judges that were asked the same probes."""
    only_first = only_second = 0
    for one, other in zip(first_replies, second_replies, strict=False):
        is_probe = one.probe.change.kind not in CONTROLS
        if is_probe and one.supported is False and other.supported is True:
            only_first += 1
        if is_probe and one.supported is True and other.supported is False:
            only_second += 1
    p_value = binomial_p_value(only_first, only_first + only_second)
    return (
        f"Of the same probes, only {first} noticed {only_first}, and only {second} noticed {only_second} "
        f"(McNemar's p {p_value:.3f})."
    )


def _share(replies: Iterable[tuple[Reply, bool]]) -> Share:
    """Return the share of hits; claims on one page are not independent."""
    pages: dict[str, list[int]] = {}
    for reply, is_hit in replies:
        counts = pages.setdefault(reply.probe.case.claim.url, [0, 0])
        counts[0] += is_hit
        counts[1] += 1
    found: Estimate = share_by_task([(hits, items) for hits, items in pages.values()])
    count = sum(items for _, items in pages.values())
    return Share(count=count, value=found.value, low=found.low, high=found.high)


def _by_leaf(replies: Iterable[Reply]) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for reply in replies:
        claim = reply.probe.case.claim
        own = counts.setdefault(f"{claim.task_id}/{claim.leaf}", [0, 0])
        own[0] += 1
        own[1] += bool(reply.supported)
    return {leaf: (probes, survived) for leaf, (probes, survived) in counts.items()}


def _survivor(reply: Reply) -> Survivor:
    case, change = reply.probe.case, reply.probe.change
    start, end = change.places[0]
    shift = len(change.before) - (end - start)
    return Survivor(
        place=case.claim.place,
        kind=change.kind,
        claim=case.claim.claim,
        url=case.claim.url,
        page_before=_around(case.page.text, start, end + shift),
        page_after=_around(change.text, start, end),
        reason_before=case.claim.reason,
        reason_after=reply.reason,
    )


def _around(text: str, start: int, end: int) -> Excerpt:
    return Excerpt(
        before=text[max(0, start - _CONTEXT_CHARS) : start],
        changed=text[start:end],
        after=text[end : end + _CONTEXT_CHARS],
    )
