"""Verdicts that stayed although the fact on the page was changed: the reports of ``probe``."""

from __future__ import annotations

import glob
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate
from mind2web2.utils.files import read_regular_file, write_whole

log = logging.getLogger(__name__)

# Where `mind2web2 probe` keeps its reports: _PROBES_FOLDER/AGENT/JUDGE/_REPORT_NAME.
_PROBES_FOLDER = "probes"
_REPORT_NAME = "probe.json"
# The figures of `probe` alone, and lists.
_OF_PROBE = {
    "seed",
    "claims",
    "by_kind",
    "discarded",
    "failed",
    "alarms",
    "leaves",
    "survivors",
}


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

    def __str__(self) -> str:
        """Return the share in words."""
        return str(Estimate(self.value, self.low, self.high))


class Excerpt(BaseModel):
    """A passage of a page, in three parts: the changed words between what surrounds them."""

    model_config = ConfigDict(frozen=True)

    before: str
    changed: str
    after: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """Return the three parts."""
        return self.before, self.changed, self.after

    def __str__(self) -> str:
        """Return the passage in one line, with the changed words in square brackets."""
        return " ".join(f"{self.before}[{self.changed or 'removed'}]{self.after}".split())


class OtherReply(BaseModel):
    """A claim that a judge was asked about on a changed page.

    Args:
        answer: the name of the answer's file without ``.md``.
        kind: the kind of change.
        page_sha256: checksum of the page as it was judged first.
        reason_before: the judge's reasoning on the page as it was.
        reason_after: the judge's reasoning on the changed page.
    """

    model_config = ConfigDict(frozen=True)

    task: str
    answer: str
    leaf: str
    kind: str
    claim: str
    url: str
    page_sha256: str | None = None
    page_before: Excerpt
    page_after: Excerpt
    reason_before: str
    reason_after: str

    @property
    def place(self) -> str:
        """Return the leaf's place as ``task/answer/leaf``."""
        return f"{self.task}/{self.answer}/{self.leaf}"

    def is_about(self, leaf: WrittenNode) -> bool:
        """Tell whether a leaf still passes by the same claim and page."""
        evidence = leaf.grounds
        if not leaf.is_passed or evidence.claim != self.claim:
            return False
        return any(
            check.url == self.url
            and (check.page is None or self.page_sha256 in (None, check.page.sha256))
            for check in evidence.pages
        )


class ChangedPages(BaseModel):
    """How often a judge noticed that the fact behind a claim had changed, on one agent's pages.

    Args:
        judge: the model that was asked.
        probes: the claims that were asked about on changed pages.
        noticed: the share of them in which the verdict changed.
        false_passes: the rest: the share of unsupported claims that the judge would pass.
        false_alarms: share of controls in which the verdict changed, although nothing relevant did.
        leaves: claims asked about and verdicts that stayed, for each leaf of a rubric, as
            ``task/leaf``.
        survivors: the verdicts that stayed.
        claims: the number of claims among the probes.
        by_kind: the noticed share of each kind of change.
        discarded: changes left out, by reason.
        failed: probes on which the judge failed; no figure counts them.
        alarms: controls in which the verdict changed.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    judge: str
    probes: int
    noticed: Share
    false_passes: Share
    false_alarms: Share
    leaves: Mapping[str, tuple[int, int]]
    survivors: tuple[OtherReply, ...]
    seed: int = 0
    claims: int = 0
    by_kind: Mapping[str, Share] = {}
    discarded: Mapping[str, int] = {}
    failed: int = 0
    alarms: tuple[OtherReply, ...] = ()

    @staticmethod
    def share_of(pages: Sequence[tuple[float, float]]) -> Share:
        """Return the share of hits among the replies of each page."""
        share = share_by_task(pages)
        count = round(sum(replies for _, replies in pages))
        return Share(count=count, value=share.value, low=share.low, high=share.high)

    @staticmethod
    def folder(agent: str, judge: str) -> Path:
        """Return where the report and the replies of a judge are kept."""
        name = "".join(sign if sign.isalnum() or sign in ".-_" else "_" for sign in judge)
        return Path(_PROBES_FOLDER) / agent / name

    def write(self) -> None:
        """Write the report beside the stored replies."""
        path = self.folder(self.agent, self.judge) / _REPORT_NAME
        write_whole(path, self.model_dump_json(indent=1).encode())

    @property
    def sentence(self) -> str:
        """Return the figures in one sentence."""
        return (
            f"On changed pages of {self.agent}, {self.judge} noticed {self.noticed} of "
            f"{self.probes} changes; it would pass {self.false_passes} of unsupported claims."
        )

    def figures(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the figures without leaves and verdicts."""
        return self.model_dump(mode="json", exclude=_OF_PROBE)

    def unread_leaves(self, task: str, answer: str, result: ResultFile) -> set[str]:
        """Return the leaves of a result whose verdicts were not read from the page.

        A result by another judge does not have such leaves.
        """
        if result.judge_model != self.judge:
            return set()
        stayed = [each for each in self.survivors if (each.task, each.answer) == (task, answer)]
        return {
            leaf.id
            for leaf in result.leaves()
            if any(each.leaf == leaf.id and each.is_about(leaf) for each in stayed)
        }


@dataclass(frozen=True, slots=True)
class StayedCount:
    """How many verdicts on a leaf stayed on changed pages."""

    stayed: int
    of: int

    def __str__(self) -> str:
        """Return the note on the leaf."""
        return f"stayed passed on {self.stayed} of {self.of} changed pages"


def changed_pages(agent: str | None = None) -> list[ChangedPages]:
    """Return the last report of each judge that was probed on an agent's pages, or on all agents'.

    A report of another format is left out.
    """
    reports: list[ChangedPages] = []
    folder = "*" if agent is None else glob.escape(agent)
    for path in sorted(Path(_PROBES_FOLDER).glob(f"{folder}/*/{_REPORT_NAME}")):
        try:
            reports.append(ChangedPages.model_validate_json(read_regular_file(path)))
        except (OSError, ValidationError) as error:
            log.warning("ignored %s: %s", path, " ".join(str(error).split())[:200])
    return reports


def stayed_by_leaf(
    reports: Iterable[ChangedPages], judges: Collection[str]
) -> dict[str, StayedCount]:
    """Return the counts of these judges by leaf, as ``task/leaf``."""
    sums: dict[str, StayedCount] = {}
    for report in reports:
        for leaf, (asked, stayed) in report.leaves.items() if report.judge in judges else ():
            before = sums.get(leaf, StayedCount(0, 0))
            sums[leaf] = StayedCount(before.stayed + stayed, before.of + asked)
    return sums
