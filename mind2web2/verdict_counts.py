"""How many verdicts behind an agent's scores rest on something doubtful; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from mind2web2.result_facts import QUOTE_MATCHES, Reservation
from mind2web2.score_grid import ScoredAnswer

RESERVATIONS: tuple[Reservation, ...] = get_args(Reservation)


@dataclass(slots=True)
class ClaimCounts:
    """Claims of an agent or a task.

    Args:
        claims: all that were judged, or failed for want of their pages.
        reservations: how many of them have each; one may have several.
        voted: those on which the judge gave its opinion more than once.
        split: those on which its opinions differ.
        quotes: how the passages that it quoted were found again in what it was shown.
    """

    claims: int = 0
    reservations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESERVATIONS, 0))
    voted: int = 0
    split: int = 0
    quotes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUOTE_MATCHES, 0))

    def add(self, answer: ScoredAnswer) -> None:
        """Count an answer's claims along."""
        for claim in answer.facts.claims:
            self.claims += 1
            self.voted += claim.is_voted
            self.split += claim.is_split
            for reservation in claim.reservations:
                self.reservations[reservation] += 1
            for match in claim.quotes:
                self.quotes[match] += 1


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """What an agent's scores rest on.

    Args:
        extractions: how many extractions have each reservation.
        in_doubt: answers that will be judged anew, by ``task/answer``.
        flagged: answers that look as if they talked to the judge.
        treeless: answers whose scores rest on no rubric tree.
        off_tree: answers whose scores are not those that their rubric trees come to.
        unexplained: other answers whose results have no evidence, so that nothing is known of their claims.
    """

    total: ClaimCounts
    tasks: Mapping[str, ClaimCounts]
    extractions: Mapping[str, int]
    in_doubt: tuple[str, ...]
    flagged: tuple[str, ...]
    treeless: tuple[str, ...]
    off_tree: tuple[str, ...]
    unexplained: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return them as they stand in the agent's ``summary.json``."""
        return {
            **asdict(self.total),
            "tasks": {task_id: asdict(counts) for task_id, counts in self.tasks.items()},
            "extractions": dict(self.extractions),
            "in_doubt": list(self.in_doubt),
            "flagged_answers": list(self.flagged),
            "treeless": list(self.treeless),
            "off_tree": list(self.off_tree),
            "unexplained": list(self.unexplained),
        }


def verdict_counts(answers: Iterable[ScoredAnswer]) -> VerdictCounts:
    """Count what the scores of these answers rest on."""
    total = ClaimCounts()
    tasks: dict[str, ClaimCounts] = {}
    extractions: dict[str, int] = dict.fromkeys(RESERVATIONS, 0)
    in_doubt, flagged, treeless, off_tree, unexplained = [], [], [], [], []
    for answer in answers:
        name, facts = f"{answer.task_id}/{answer.answer_name}", answer.facts
        total.add(answer)
        tasks.setdefault(answer.task_id, ClaimCounts()).add(answer)
        for reservation in (kind for extraction in facts.extractions for kind in extraction):
            extractions[reservation] += 1
        in_doubt += [name] if facts.in_doubt else []
        flagged += [name] if facts.is_flagged else []
        treeless += [name] if facts.is_treeless else []
        off_tree += [name] if facts.is_off_tree else []
        unexplained += [] if facts.is_explained or facts.is_treeless else [name]
    names = (in_doubt, flagged, treeless, off_tree, unexplained)
    return VerdictCounts(total, tasks, extractions, *map(tuple, names))
