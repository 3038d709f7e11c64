"""An answer with its score, and what its result says of its making and its verdicts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mind2web2.judge.record import JudgeRecord
from mind2web2.results.claim_facts import (
    ClaimFacts,
    Reservation,
    claim_facts,
    extraction_reservations,
    is_claim,
)
from mind2web2.results.provenance import Served
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import latest_result
from mind2web2.rubric.verdicts import is_score
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.rubric.written_tree import WrittenNode

OWN_PACKAGE = "mind2web2"
_JUDGE_PARAMETERS = {"temperature", "reasoning_effort", "max_images", "extra_body"}

log = logging.getLogger(__name__)


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

    @property
    def place(self) -> tuple[str, str]:
        """Return task and answer."""
        return self.task_id, self.answer_name

    @property
    def is_judged(self) -> bool:
        """Tell whether the score is a judge's: a run in which the agent failed has no judge."""
        return self.score is not None and self.reason is None

    def __post_init__(self) -> None:
        if self.score is not None and not is_score(self.score):
            raise ValueError(
                f"score {self.score} of {self.task_id}/{self.answer_name} is not within 0 and 1"
            )


def scored_answers(answers: Iterable[ScoredAnswer]) -> list[ScoredAnswer]:
    """Return the answers that have a score."""
    return [answer for answer in answers if answer.score is not None]


def scored_by_judge(answers: Iterable[ScoredAnswer]) -> list[ScoredAnswer]:
    """Return the answers with a judge's score, without the runs in which the agent failed."""
    return [answer for answer in answers if answer.is_judged]


def served_names(answers: Iterable[ScoredAnswer]) -> Counter[str]:
    """Return how many answers the judge judged under each name that its server reported."""
    return Counter(name for answer in answers for name in answer.facts.served)


def result_facts(result: ResultFile) -> ResultFacts:
    """Return the facts that a result states."""
    leaves = list(result.leaves())
    reservations = [extraction_reservations(record) for record in result.extractions]
    facts = ResultFacts(
        judge=f"{result.judge_model}, parameters not recorded" if result.judge_model else None,
        in_doubt=bool(result.doubts),
        capture_days=_capture_days(leaves),
        is_explained=any(leaf.evidence is not None for leaf in leaves),
        is_treeless=not leaves,
        is_off_tree=result.other_score_by_tree is not None,
        is_flagged=bool(result.answer_flags),
        claims=tuple(claim_facts(leaf) for leaf in leaves if is_claim(leaf)),
        extractions=tuple(filter(None, reservations)),
    )
    made_from = result.provenance
    if made_from is None:
        return facts
    return replace(
        facts,
        judge=_judge(result, made_from.judge),
        server=_server(made_from.judge),
        served=frozenset(_names(made_from.served)),
        versions={OWN_PACKAGE: str(result.run.version), **made_from.versions},
        script=made_from.script,
        script_sha256=made_from.script_sha256,
    )


def answer_of_result(path: Path) -> ScoredAnswer:
    """Return an answer with what its newest result says."""
    answer_folder = path.parent.parent
    answer = ScoredAnswer(answer_folder.parent.name, f"{answer_folder.name}.md")
    result = latest_result(path.parent)
    if result is None:
        why = f"its newest result {path.name} is damaged: evaluate it again"
        return replace(answer, reason=why)
    content = result.content
    if content.is_edited:
        log.warning("result was changed after it was written, counts as none path=%s", path)
        why = f"its newest result {path.name} was changed after it was written: evaluate it again"
        return replace(answer, reason=why)
    if content.final_score is None:
        log.warning("no score from 0 to 1 in result %s", path)
        why = f"no score from 0 to 1 in its result {path.name}: evaluate it again"
        return replace(answer, reason=why)
    return replace(
        answer,
        score=content.final_score,
        judge_model=content.judge_model,
        time_s=content.time_seconds,
        facts=result_facts(content),
    )


def _judge(result: ResultFile, judge: JudgeRecord) -> str:
    judge_parameters = judge.model_dump(include=_JUDGE_PARAMETERS, exclude_none=True)
    parameters = [f"{name}={value}" for name, value in judge_parameters.items()]
    if judge.votes != DEFAULT_TRIALS:
        parameters.append(f"votes={judge.votes}")
    return " ".join([result.judge_model or judge.model, *parameters])


def _server(judge: JudgeRecord) -> str | None:
    # A replay takes judgments of any server; a caller's own client has another name in each
    # process.
    is_unknown = judge.endpoint in ("", "replay") or judge.endpoint.startswith("client ")
    return None if is_unknown else judge.endpoint


def _names(served: Iterable[Served]) -> Iterator[str]:
    for one in served:
        if one.model or one.system_fingerprint:
            model = one.model or "a model without a name"
            yield (f"{model} ({one.system_fingerprint})" if one.system_fingerprint else model)


def _capture_days(leaves: Iterable[WrittenNode]) -> tuple[str, ...]:
    moments = [check.shown.captured_at for leaf in leaves for check in leaf.grounds.pages]
    days = [moment[:10] for moment in filter(None, moments)]
    return (min(days), max(days)) if days else ()
