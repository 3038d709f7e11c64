"""What a decision model would have decided before a strong judge, by its probability, where both were asked.

``--judge_confidence 1`` asks both about each claim: the strong judge decides, and the evidence keeps the
probability. From such results follows what each lower confidence would have changed and saved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mind2web2.judge.cascade import JudgeCascade
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.rubric.verdicts import (
    Evidence,
    PageShown,
    Vote,
    VotedBy,
    first_judge_doubts,
    is_majority,
)
from mind2web2.runs.economy import is_score_changed
from mind2web2.runs.planned_votes import voted_sources
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import loaded_results
from mind2web2.runs.two_judges import boldest
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate

# From the most cautious to the boldest, the order in which agreement is tested.
CONFIDENCES = (0.99, 0.98, 0.97, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)


@dataclass(frozen=True)
class ConfidenceFigures:
    """What a confidence would have cost and changed, against the strong judge alone, with intervals by task.

    Args:
        strong: votes of the strong judge, as a share of those that it cast.
        price: as a share of what both cost where both were asked; no value without stored judgments.
        verdicts: of the verdicts, how many would differ.
        scores: of the answers' scores, how many would differ.
    """

    confidence: float
    strong: Estimate
    price: Estimate
    verdicts: Estimate
    scores: Estimate


@dataclass(frozen=True)
class DecisionEconomy:
    """The answers that a decision model and a strong judge were asked about, by all confidences.

    Args:
        asked: claims with a probability; the others are the strong judge's in any case.
        chosen: the lowest confidence that has the wanted agreement for certain, ``None`` if none has.
    """

    answers: int
    tasks: int
    claims: int
    asked: int
    rules: Sequence[ConfidenceFigures]
    agreement: float | None = None
    chosen: float | None = None


@dataclass
class _Work:
    """One answer by one confidence."""

    strong_votes: int = 0
    all_votes: int = 0
    claims: int = 0
    asked: int = 0
    cost_usd: float = 0.0
    saved_usd: float = 0.0
    flipped: dict[int, bool] = field(default_factory=dict)
    is_score_changed: bool = False


def decision_economy(
    root: Path,
    agent_name: str,
    cascade: JudgeCascade,
    task_ids: Iterable[str] = (),
    agreement: float | None = None,
) -> DecisionEconomy:
    """Return the figures of an agent's answers about which both judges were asked.

    Args:
        agreement: the share of the strong judge's verdicts that the chosen confidence is to keep.
    """
    wanted = set(task_ids)
    found: dict[str, list[ResultFile]] = defaultdict(list)
    for folder in sorted((root / agent_name).glob("*/*/results")):
        task_id = folder.parts[-3]
        result = _newest(folder, cascade)
        if result is not None and (not wanted or task_id in wanted):
            found[task_id].append(result)
    costs = _costs(root / agent_name / FILE_NAME) if found else {}
    rules: list[ConfidenceFigures] = []
    works: list[_Work] = []
    for confidence in CONFIDENCES:
        by_task = [
            [_work(result, confidence, costs) for result in own]
            for own in found.values()
        ]
        works = [work for own in by_task for work in own]
        rules.append(_figures(confidence, by_task, is_priced=bool(costs)))
    chosen = None
    if agreement is not None:
        chosen = boldest(
            [(each.confidence, each.verdicts) for each in rules], agreement
        )
    return DecisionEconomy(
        answers=len(works),
        tasks=len(found),
        claims=sum(work.claims for work in works),
        asked=sum(work.asked for work in works),
        rules=rules,
        agreement=agreement,
        chosen=chosen,
    )


def _newest(folder: Path, cascade: JudgeCascade) -> ResultFile | None:
    for loaded in loaded_results(folder):
        result = loaded.content
        if result.provenance is None or result.final_score is None:
            continue
        judge = result.provenance.judge
        both = (judge.first_model, judge.model) == (cascade.first, cascade.strong)
        if both and judge.confidence == 1:
            return result
    return None


def _costs(path: Path) -> dict[str, float]:
    """Return the dollars of each stored judgment."""
    if not path.is_file():
        return {}
    with JudgmentStore(path) as store:
        return {
            each.key: each.cost_usd
            for each in store.all()
            if each.cost_usd is not None and each.purpose == "verify"
        }


def _work(result: ResultFile, confidence: float, costs: Mapping[str, float]) -> _Work:
    work = _Work()
    for leaf in result.leaves():
        evidence = leaf.evidence
        if evidence is None or evidence.decided_by != "judge":
            continue
        work.claims += 1
        by_source = voted_sources(evidence)
        work.asked += any(voted.first_votes for voted, _ in by_source)
        passes = _passes(work, evidence, by_source, confidence, costs)
        if passes is not (leaf.verdict.status == "passed"):
            work.flipped[id(leaf)] = passes
    work.is_score_changed = any(
        is_score_changed(tree, work.flipped) for tree in result.trees
    )
    usage = result.judge_usage
    work.cost_usd = 0.0 if usage is None else usage.cost_usd or 0.0
    return work


def _passes(
    work: _Work,
    evidence: Evidence,
    by_source: Sequence[tuple[VotedBy, PageShown | None]],
    confidence: float,
    costs: Mapping[str, float],
) -> bool:
    """Return the verdict of both together, and count the strong judge's votes.

    A page that the strong judge passed may have spared it others. Where the decision model rejects it, the
    claim counts as failed, which is another verdict: the share of those is not understated.
    """
    passes = False
    for voted, page in by_source:
        work.all_votes += len(voted.votes)
        first = voted.first_votes
        is_first_enough = bool(first) and not first_judge_doubts(
            first, page, evidence.doubt or "gates", confidence
        )
        if passes or is_first_enough:
            work.saved_usd += _dollars(voted.votes, costs)
        else:
            work.strong_votes += len(voted.votes)
        passes = passes or is_majority(first if is_first_enough else voted.votes)
    return passes


def _dollars(votes: Sequence[Vote], costs: Mapping[str, float]) -> float:
    return sum(costs.get(vote.judgment or "", 0.0) for vote in votes)


def _figures(
    confidence: float, by_task: Sequence[Sequence[_Work]], *, is_priced: bool
) -> ConfidenceFigures:
    works = [work for own in by_task for work in own]
    cost_usd = sum(work.cost_usd for work in works)
    price = None
    if is_priced and cost_usd:
        price = 1 - sum(work.saved_usd for work in works) / cost_usd
    return ConfidenceFigures(
        confidence=confidence,
        strong=share_by_task(
            [
                (
                    sum(work.strong_votes for work in own),
                    sum(work.all_votes for work in own),
                )
                for own in by_task
            ]
        ),
        price=Estimate(price),
        verdicts=share_by_task(
            [
                (sum(len(work.flipped) for work in own), sum(w.claims for w in own))
                for own in by_task
            ]
        ),
        scores=share_by_task(
            [(sum(work.is_score_changed for work in own), len(own)) for own in by_task]
        ),
    )
