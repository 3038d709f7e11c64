"""The anchor: cases asked again from time to time, to notice a model that has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.judge.last_check import CHECKS_FOLDER, check_file_stem
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge_check.check import JudgeCheck
from mind2web2.statistics.paired import binomial_p_value
from mind2web2.utils.files import read_regular_file

log = logging.getLogger(__name__)

CASES = 60
_LEVEL = 0.05


class AnchorRecord(BaseModel):
    """A judge's replies to the anchor on one day.

    Args:
        votes: of a claim at most.
        right: whether each case that has a reply was right, by its id.
        divided: the number of cases on which its own votes differ; ``None`` with one vote, and in
            records of earlier versions.
        version: of this package, whose prompts were used.
    """

    model_config = ConfigDict(frozen=True)

    judge: JudgeIdentity
    set_version: int
    set_digest: str
    votes: int
    right: Mapping[str, bool]
    divided: int | None = None
    version: str = __version__
    checked: str

    @property
    def day(self) -> str:
        """Return the date."""
        return self.checked[:10]

    def is_comparable(self, other: AnchorRecord) -> bool:
        """Tell whether both are of the same cases and votes."""
        asked = (self.set_version, self.set_digest, self.votes)
        return asked == (other.set_version, other.set_digest, other.votes)


@dataclass(frozen=True, slots=True)
class Drift:
    """How a judge's replies to the anchor differ from earlier ones.

    Args:
        cases: with a reply both times.
        lost: right then, wrong now.
        gained: wrong then, right now.
        p_value: of its accuracy, McNemar's test (mid-p).
        p_replies: of as many replies that differ as the judge differs from itself; ``None`` if that
            is unknown.
    """

    before: AnchorRecord
    now: AnchorRecord
    cases: int
    lost: int
    gained: int
    p_value: float
    p_replies: float | None

    @property
    def differing(self) -> int:
        """Return the number of cases with another reply."""
        return self.lost + self.gained

    @property
    def is_shown(self) -> bool:
        """Tell whether chance does not explain the difference."""
        differs_more = self.p_replies is not None and self.p_replies < _LEVEL
        return self.p_value < _LEVEL or differs_more

    @property
    def sentence(self) -> str:
        """Return it in words."""
        what = (
            "The judge has changed under its name, beyond chance"
            if self.is_shown
            else "No sign that the judge has changed"
        )
        prompts = (
            ""
            if self.before.version == self.now.version
            else f" Its questions may have, too, from mind2web2 {self.before.version} to "
            f"{self.now.version}."
        )
        itself = "with one vote it is unknown in how many it differs from itself"
        if self.now.divided is not None:
            itself = f"it differs from itself in {self.now.divided}"
        return (
            f"{what} since {self.before.day}: {self.differing} of {self.cases} replies differ; "
            f"{itself}. {self.lost} are wrong that were right, {self.gained} right that were wrong "
            f"(McNemar, p = {self.p_value:.2g}).{prompts}"
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {
            "since": self.before.checked,
            "cases": self.cases,
            "lost": self.lost,
            "gained": self.gained,
            "differing": self.differing,
            "differs_from_itself": self.now.divided,
            "p_value": self.p_value,
            "p_replies": self.p_replies,
            "is_shown": self.is_shown,
        }


def anchor_of(check: JudgeCheck, votes: int) -> AnchorRecord:
    """Return a check of the anchor as it is kept."""
    labelled = check.labelled
    return AnchorRecord(
        judge=check.judge,
        set_version=labelled.version,
        set_digest=labelled.digest,
        votes=votes,
        divided=None
        if votes == 1
        else sum(any(len(set(own)) > 1 for own in one.votes) for one in check.outcomes),
        right={one.case.id: one.is_right for one in check.outcomes if one.is_right is not None},
        checked=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def drift(before: AnchorRecord, now: AnchorRecord) -> Drift:
    """Compare two replies to the same anchor."""
    shared = before.right.keys() & now.right.keys()
    lost = sum(before.right[case] and not now.right[case] for case in shared)
    gained = sum(now.right[case] and not before.right[case] for case in shared)
    p_value = binomial_p_value(lost, lost + gained)
    p_replies = None
    if now.divided is not None:
        # If the judge differs from itself as often, different replies are not a sign of a change.
        more = max(lost + gained, now.divided)
        p_replies = binomial_p_value(more, more + now.divided)
    return Drift(before, now, len(shared), lost, gained, p_value, p_replies)


def drifts(earlier: Sequence[AnchorRecord], now: AnchorRecord) -> list[Drift]:
    """Compare with the last replies to the same anchor, and with the first: small steps add up."""
    comparable = [one for one in earlier if one.is_comparable(now)]
    if not comparable:
        return []
    compared = [comparable[-1]]
    if len(comparable) > 1:
        compared.append(comparable[0])
    return [drift(before, now) for before in compared]


def earlier_anchors(results_root: Path, judge: JudgeIdentity) -> list[AnchorRecord]:
    """Return a judge's replies to anchors, the oldest first."""
    path = _path(results_root, judge)
    if not path.is_file():
        return []
    found = []
    for line in read_regular_file(path).splitlines():
        try:
            found.append(AnchorRecord.model_validate_json(line))
        except ValidationError:
            log.warning("a line of earlier anchors cannot be read path=%s", path)
    return found


def keep_anchor(results_root: Path, now: AnchorRecord) -> None:
    """Add a judge's replies to its earlier ones.

    Raises:
        ResultWriteError: the folder cannot be written.
    """
    path = _path(results_root, now.judge)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(now.model_dump_json() + "\n")
    except OSError as error:
        raise ResultWriteError.at(path, error) from error


def _path(results_root: Path, judge: JudgeIdentity) -> Path:
    return results_root / CHECKS_FOLDER / "anchors" / f"{check_file_stem(judge)}.jsonl"


@dataclass(frozen=True, slots=True)
class AnchorNews:
    """A judge's replies to the anchor, compared with its earlier ones."""

    drifts: Sequence[Drift]

    @property
    def lines(self) -> list[str]:
        """Return the sentences to print."""
        return [change.sentence for change in self.drifts] or [
            "The first anchor of this judge with these cases and votes: ask it again later."
        ]

    @property
    def has_changed(self) -> bool:
        """Tell whether the judge has changed beyond chance."""
        return any(change.is_shown for change in self.drifts)


def anchor_news(results_root: Path, check: JudgeCheck, votes: int) -> AnchorNews:
    """Compare a judge's replies with its earlier ones, and keep them."""
    now = anchor_of(check, votes)
    found = drifts(earlier_anchors(results_root, now.judge), now)
    if now.right:
        keep_anchor(results_root, now)
    return AnchorNews(found)
