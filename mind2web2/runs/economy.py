"""The price of votes: stored votes replayed by each rule of ``--votes``; pure but for reading results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mind2web2.rubric.verdicts import (
    DEFAULT_TRIALS,
    Doubt,
    Evidence,
    Outcome,
    PageShown,
    Vote,
    aggregate,
    doubts_of,
    implied_verdict,
    is_majority,
)
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.planned_votes import votes_by_page
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import latest_results
from mind2web2.runs.score_bounds import blocked, unblocked
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate

Sign = Doubt | Literal["gate"]
SIGNS: tuple[Sign, ...] = (*get_args(Doubt), "gate")
# The signs upon which a rule asks for further votes; ``None`` asks always.
RULES: Mapping[str, frozenset[Sign] | None] = {
    "always": None,
    "doubt": frozenset(SIGNS),
    **{f"doubt without {sign}": frozenset(SIGNS) - {sign} for sign in SIGNS},
    "1": frozenset(),
}
_PASSED = Outcome(1.0, "passed")
_FAILED = Outcome(0.0, "failed")
_SAME_SCORE = 1e-9


@dataclass(frozen=True)
class Replayed:
    """The votes of one result by a rule.

    Args:
        requests: votes that the rule asks for, of the stored ones.
        changed: leaves with another verdict.
    """

    requests: int = 0
    changed: int = 0
    is_score_changed: bool = False


@dataclass(frozen=True)
class RuleFigures:
    """What a rule would have cost and changed, each a share with its interval by task.

    Args:
        requests: of the votes that were asked for.
        verdicts: of the verdicts by vote, how many would differ.
        scores: of the answers' scores, how many would differ, or might.
    """

    rule: str
    requests: Estimate
    verdicts: Estimate
    scores: Estimate


@dataclass(frozen=True)
class Economy:
    """An agent's stored votes by all rules.

    Args:
        claims: leaves that the judge decided by the default number of votes.
        other_rules: answers that another rule than ``always`` judged; they do not count.
    """

    answers: int
    tasks: int
    claims: int
    votes: int
    other_rules: int
    rules: Sequence[RuleFigures]


def economy(
    eval_results_root: Path, agent_name: str, task_ids: Iterable[str] = ()
) -> Economy:
    """Return what each rule would have cost and changed in an agent's newest results."""
    wanted = set(task_ids)
    by_task: dict[str, list[ResultFile]] = defaultdict(list)
    other_rules = 0
    for task_id, _, found in latest_results(eval_results_root, agent_name):
        if (wanted and task_id not in wanted) or found.content.final_score is None:
            continue
        if _is_by_default_rule(found.content):
            by_task[task_id].append(found.content)
        else:
            other_rules += 1
    return economy_of(by_task, other_rules)


def economy_of(
    results: Mapping[str, Sequence[ResultFile]], other_rules: int = 0
) -> Economy:
    """Return the figures of results by task, all judged by the rule ``always``."""
    voted = {task: [_voted(result) for result in own] for task, own in results.items()}
    claims = {task: sum(map(len, own)) for task, own in voted.items()}
    votes = {
        task: sum(_vote_count(leaf) for leaves in own for leaf in leaves)
        for task, own in voted.items()
    }
    return Economy(
        answers=sum(map(len, results.values())),
        tasks=len(results),
        claims=sum(claims.values()),
        votes=sum(votes.values()),
        other_rules=other_rules,
        rules=[
            _figures(rule, signs, results, votes, claims)
            for rule, signs in RULES.items()
        ],
    )


def _figures(
    rule: str,
    signs: frozenset[Sign] | None,
    results: Mapping[str, Sequence[ResultFile]],
    votes: Mapping[str, int],
    claims: Mapping[str, int],
) -> RuleFigures:
    if signs is None:
        # By definition, not by what these tasks happen to show.
        return RuleFigures(rule, Estimate(1.0), Estimate(0.0), Estimate(0.0))
    requests, verdicts, scores = [], [], []
    for task, own in results.items():
        replays = [replayed(result, signs) for result in own]
        requests.append((sum(each.requests for each in replays), votes[task]))
        verdicts.append((sum(each.changed for each in replays), claims[task]))
        scores.append((sum(each.is_score_changed for each in replays), len(own)))
    return RuleFigures(rule, *map(share_by_task, (requests, verdicts, scores)))


def _is_by_default_rule(result: ResultFile) -> bool:
    if result.provenance is None:
        return True
    judge = result.provenance.judge
    return judge.votes == "always" and judge.first_model is None


def replayed(result: ResultFile, signs: frozenset[Sign] | None) -> Replayed:
    """Replay the votes of a result by the rule that asks for more upon these signs."""
    requests = 0
    flipped: dict[int, bool] = {}
    for leaf in _voted(result):
        asked, passes = _leaf_by_rule(leaf, signs)
        requests += asked
        if passes is not (leaf.verdict.status == "passed"):
            flipped[id(leaf)] = passes
    is_changed = any(is_score_changed(tree, flipped) for tree in result.trees)
    return Replayed(requests, len(flipped), is_changed)


def _voted(result: ResultFile) -> list[WrittenNode]:
    """Return the leaves that votes by the default rule decided, and no script since."""
    return [
        leaf
        for leaf in result.leaves()
        if leaf.evidence is not None and _is_voted(leaf, leaf.evidence)
    ]


def _is_voted(leaf: WrittenNode, evidence: Evidence) -> bool:
    is_by_votes = (
        evidence.decided_by == "judge" and evidence.num_trials == DEFAULT_TRIALS
    )
    return is_by_votes and implied_verdict(evidence) == leaf.verdict


def _votes_of(leaf: WrittenNode) -> list[tuple[PageShown | None, Sequence[Vote]]]:
    return [] if leaf.evidence is None else votes_by_page(leaf.evidence)


def _vote_count(leaf: WrittenNode) -> int:
    return sum(len(votes) for _, votes in _votes_of(leaf))


def _leaf_by_rule(leaf: WrittenNode, signs: frozenset[Sign] | None) -> tuple[int, bool]:
    """Return the votes that a rule asks for, and whether the leaf passes.

    The first page that supports the claim decides. What pages that were never asked about would say is
    unknown, and counts as no support.
    """
    requests = 0
    for page, votes in _votes_of(leaf):
        found: set[Sign] = {
            *doubts_of(votes[0], page),
            *(("gate",) if leaf.critical else ()),
        }
        is_first_enough = signs is not None and not found & signs
        counted = votes[:1] if is_first_enough else votes
        requests += len(counted)
        if is_majority(counted):
            return requests, True
    return requests, False


def is_score_changed(root: WrittenNode, flipped: Mapping[int, bool]) -> bool:
    """Tell whether other verdicts change the score, or have leaves judged that were skipped."""
    leaves = list(root.leaves())
    own = {id(leaf): flipped[id(leaf)] for leaf in leaves if id(leaf) in flipped}
    passing = {leaf for leaf, passes in own.items() if passes}
    if not own:
        return False
    if unblocked(leaves, passing) - unblocked(leaves, set()):
        return True
    failing = blocked(root, leaves, own.keys() - passing)
    verdicts = dict.fromkeys(passing, _PASSED) | dict.fromkeys(failing, _FAILED)
    score_before = aggregate(root, {})[id(root)].score
    score_after = aggregate(root, verdicts)[id(root)].score
    return abs(score_before - score_after) > _SAME_SCORE
