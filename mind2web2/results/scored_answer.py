"""An answer with its score, and what its result says of its making and its verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mind2web2.results.claim_facts import (
    ClaimFacts,
    Reservation,
)
from mind2web2.rubric.verdicts import is_score

OWN_PACKAGE = "mind2web2"


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """The facts of one result about its making and its verdicts.

    Args:
        judge: model and parameters; ``None`` where it names no judge.
        server: the judge's server, as far as its name tells servers apart.
        served: the models that the judge's server reported.
        versions: of this package, Python and libraries, by name.
        script: version folder and file name of the eval script.
        in_doubt: something temporary may have changed the score; the next run judges the answer
            again.
        capture_days: first and last day on which a judged page was captured, ISO 8601; empty if
            unknown.
        is_explained: it has evidence for its verdicts.
        is_treeless: its score comes from the script alone, without a rubric tree.
        is_off_tree: its script returned another score than its rubric tree gives.
        is_flagged: the answer's text tries to instruct the judge.
        claims: verdicts of the judge, and on unavailable pages.
        extractions: the reservations of each extraction that has any.
    """

    judge: str | None = None
    server: str | None = None
    served: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    script_sha256: str | None = None
    in_doubt: bool = False
    capture_days: tuple[str, ...] = ()
    is_explained: bool = False
    is_treeless: bool = False
    is_off_tree: bool = False
    is_flagged: bool = False
    claims: tuple[ClaimFacts, ...] = ()
    extractions: tuple[frozenset[Reservation], ...] = ()

    @property
    def own_version(self) -> str:
        """Return the version of this package, empty where it is unknown."""
        return self.versions.get(OWN_PACKAGE, "")


NO_FACTS = ResultFacts()


NO_RESULT = "no result"
NEVER_EVALUATED = "never evaluated"


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One answer; ``score`` is ``None`` where it has no result.

    Args:
        answer_name: the answer's file name; answers of one name are one run.
        word_count: whitespace-separated words of the answer.
        reason: why there is no score, in one line; with a score of 0, how the agent's run failed.

    Raises:
        ValueError: the score is not a number from 0 to 1.
    """

    task_id: str
    answer_name: str
    score: float | None = None
    word_count: int | None = None
    time_s: float | None = None
    judge_model: str | None = None
    reason: str | None = None
    facts: ResultFacts = NO_FACTS

    def __post_init__(self) -> None:
        if self.score is not None and not is_score(self.score):
            raise ValueError(
                f"score {self.score} of {self.task_id}/{self.answer_name} is not within 0 and 1"
            )


def served_names(answers: Iterable[ScoredAnswer]) -> Counter[str]:
    """Return how many answers the judge judged under each name that its server reported."""
    return Counter(name for answer in answers for name in answer.facts.served)
